"""tools/bench_backends.py computes logs by what is here, and leaves out what is not."""

from __future__ import annotations

import importlib.util
import json

import pytest

from tests.tool_runs import run_tool


def test_the_quick_measurement(capsys: pytest.CaptureFixture[str]) -> None:
    """Each job by each backend that is here, none wrong; a sentence for each that is not."""
    assert run_tool("bench_backends", "--quick", "--json") == 0
    out, err = capsys.readouterr()
    results = json.loads(out)["results"]
    assert {each["name"].partition(": ")[2] for each in results if each["value"] == 1.0} >= {"numpy, in numpy's time"}
    wrong = [each["value"] for each in results if each["name"].endswith(", wrong")]
    assert len(wrong) >= 3 and not any(wrong)
    if importlib.util.find_spec("torch") is None:
        assert err.splitlines() == [
            f"--backend torch:{device} needs PyTorch, which is not installed; pip install 'kernbench[torch]'."
            for device in ("cpu", "cuda")
        ]
