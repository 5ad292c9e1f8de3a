"""tools/bench_gemm.py and the large jobs of tools/bench_engine.py run, and small ones are within reason."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[1] / "tools" / "bench_gemm.py"


def test_the_quick_measurement() -> None:
    done = subprocess.run([sys.executable, str(TOOL), "--quick", "--json"], check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    measured = {result["name"]: result["value"] for result in found["results"]}
    assert found["ok"] is True
    # the paths of its blocks are short, so that events other than hops weigh more than in a chain of nodes
    assert 1.0 <= measured["events per hop"] < 1.15
    assert measured["phase 2's memory, in plain computations"] < 1.5


def test_the_large_jobs_made_small() -> None:
    tool = str(TOOL.with_name("bench_engine.py"))
    done = subprocess.run(
        [sys.executable, tool, "--large", "--quick", "--json"], check=True, capture_output=True, text=True
    )
    measured = {result["name"]: result for result in json.loads(done.stdout)["results"]}
    for job in ("attention of 2048 tokens", "gemm-composite 4096"):
        assert measured[f"{job}: peak memory"]["limit"] == 2048
        assert measured[f"{job}: processor time"]["limit"] == 120
        assert 0 < measured[f"{job}: events"]["value"] < 2
