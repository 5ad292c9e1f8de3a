"""tools/bench_gemm.py runs, and its small products are within reason."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "bench_gemm.py"


@pytest.mark.slow
def test_the_quick_measurement() -> None:
    done = subprocess.run([sys.executable, str(TOOL), "--quick", "--json"], check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    measured = {result["name"]: result["value"] for result in found["results"]}
    assert found["ok"] is True
    assert 1.0 <= measured["events per hop"] < 1.1
    assert measured["phase 2's memory, in plain computations"] < 1.5
