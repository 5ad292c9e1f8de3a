"""tools/bench_ops.py tells what an op costs, of runs that it subtracts."""

from __future__ import annotations

import json
import math

import pytest

from tests.tool_runs import run_tool


def test_the_quick_measurement(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tool("bench_ops", "--quick", "--json") == 0
    measured = {result["name"]: result["value"] for result in json.loads(capsys.readouterr().out)["results"]}
    # events are the same in every run: an op moves a tile, or computes on one, and takes that many with it
    assert 10 < measured["events of an op of attention"] < 80
    assert 10 < measured["events of an op of an all-reduce over 8 packages"] < 30
    costs = [value for name, value in measured.items() if "phase" in name]
    assert len(costs) == 3
    assert all(math.isfinite(value) and value != 0 for value in costs)  # a busy machine says of them what it likes
