"""tools/bench_hbm.py runs, and has a ratio for each pattern."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_a_tree_beside_itself() -> None:
    tool = [sys.executable, str(ROOT / "tools" / "bench_hbm.py"), str(ROOT)]
    done = subprocess.run([*tool, "--rounds", "3", "--part", "0.1"], check=True, capture_output=True, text=True)
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()[2:]]
    assert len(rows) == 8
    assert rows[0][0] == "sequential reads, 4 KiB"
    assert all(float(ratio) > 0.0 for _, ratio in rows)
