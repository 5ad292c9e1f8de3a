"""tools/bench_retime.py holds points that are timed again against their runs, and says what they cost."""

from __future__ import annotations

import re

import pytest

from tests.tool_runs import run_tool


def test_the_quick_measurement(capsys: pytest.CaptureFixture[str]) -> None:
    """What it measures depends on the machine, what is equal does not."""
    assert run_tool("bench_retime", "--points", "8", "--topology", "tiny", "gemm,M=64,N=64,K=64") == 0
    told = capsys.readouterr().out
    assert re.fullmatch(r"gemm,M=64,N=64,K=64: run \d+ ms, point \d+ ms, [\d.]+%; 2 equal\n", told), told
