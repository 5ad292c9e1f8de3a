"""tools/bench_gemm.py and the large jobs of tools/bench_engine.py run, and small ones are within reason."""

from __future__ import annotations

import json

import pytest

from tests.tool_runs import run_tool


def test_the_quick_measurement(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tool("bench_gemm", "--quick", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    measured = {result["name"]: result["value"] for result in found["results"]}
    assert found["ok"] is True
    # the paths of its blocks are short, so that events other than hops weigh more than in a chain of nodes
    assert 1.0 <= measured["events per hop"] < 1.15
    assert measured["phase 2's memory, in plain computations"] < 1.5


def test_the_large_jobs_made_small(capsys: pytest.CaptureFixture[str]) -> None:
    """Each in a process of its own."""
    assert run_tool("bench_engine", "--large", "--quick", "--json") == 0
    measured = {result["name"]: result for result in json.loads(capsys.readouterr().out)["results"]}
    for job in ("attention of 2048 tokens", "gemm-composite 4096"):
        assert measured[f"{job}: peak memory"]["limit"] == 2048
        assert measured[f"{job}: processor time"]["limit"] == 120
        assert 0 < measured[f"{job}: events"]["value"] < 2
