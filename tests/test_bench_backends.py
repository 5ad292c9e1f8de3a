"""tools/bench_backends.py computes logs by what is here, and leaves out what is not."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[1] / "tools" / "bench_backends.py"


def test_the_quick_measurement() -> None:
    """Each job by each backend that is here, none wrong; a sentence for each that is not."""
    done = subprocess.run([sys.executable, str(TOOL), "--quick", "--json"], check=True, capture_output=True, text=True)
    results = json.loads(done.stdout)["results"]
    assert {each["name"].partition(": ")[2] for each in results if each["value"] == 1.0} >= {"numpy, in numpy's time"}
    wrong = [each["value"] for each in results if each["name"].endswith(", wrong")]
    assert len(wrong) >= 3 and not any(wrong)
    if importlib.util.find_spec("torch") is None:
        assert done.stderr.splitlines() == [
            f"--backend torch:{device} needs PyTorch, which is not installed; pip install 'kernbench[torch]'."
            for device in ("cpu", "cuda")
        ]
