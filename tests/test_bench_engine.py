"""tools/bench_engine.py keeps to its limits; those that it asks of other tools are of the shipped benches."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_engine_keeps_to_its_limits() -> None:
    """Events and cost of a hop, and of unused hooks, stay within the limits of the benchmark."""
    path = Path(__file__).parents[1] / "tools" / "bench_engine.py"
    done = subprocess.run([sys.executable, str(path), "--quick", "--json"], capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    assert [result["name"] for result in report["results"] if not result["ok"]] == []
    assert (done.returncode, report["ok"]) == (0, True)
