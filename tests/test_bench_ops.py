"""tools/bench_ops.py tells what an op costs, of runs that it subtracts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[1] / "tools" / "bench_ops.py"


def test_the_quick_measurement() -> None:
    done = subprocess.run([sys.executable, str(TOOL), "--quick", "--json"], check=True, capture_output=True, text=True)
    measured = {result["name"]: result["value"] for result in json.loads(done.stdout)["results"]}
    # events are the same in every run: an op moves a tile, or computes on one, and takes that many with it
    assert 10 < measured["events of an op of attention"] < 80
    assert 10 < measured["events of an op of an all-reduce over 8 packages"] < 30
    costs = [value for name, value in measured.items() if "phase" in name]
    assert len(costs) == 3
    assert all(1 < value < 20000 for value in costs)
