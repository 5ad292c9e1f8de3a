"""tools/bench_hbm.py runs, and has a ratio for each pattern."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tool_runs import run_tool

ROOT = Path(__file__).parents[1]


def test_a_tree_beside_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """Each in a process of its own."""
    assert run_tool("bench_hbm", str(ROOT), "--rounds", "3", "--part", "0.1") == 0
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert len(rows) == 8
    assert rows[0][0] == "sequential reads, 4 KiB"
    assert all(float(ratio) > 0.0 for _, ratio in rows)
