"""tools/bench_sweep.py runs, and what a point costs beside its run is bounded in calls."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kernbench_builtin.cache import loaded
from kernbench_builtin.sweeps import points_of
from kernbench_builtin.sweeps.evaluate import evaluate, job_of
from tests.conftest import count_calls, forget_executed, loaded_tool
from tests.tool_runs import run_tool

TOOL = Path(__file__).parents[1] / "tools" / "bench_sweep.py"


def test_the_quick_measurement(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("KERNBENCH_CACHE", "set by the tool")
    monkeypatch.setattr(loaded, "loaded_files", lambda *_: {})  # a user has not loaded all tests
    forget_executed()
    assert run_tool("bench_sweep", "--quick", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    measured = {result["name"]: result["value"] for result in found["results"]}
    assert found["ok"] is True
    assert measured["points"] == 40
    assert measured["a point alone, of a processor"] > measured["a point that the cache has, of a processor"]
    assert measured["a point that is recorded"] < measured["a point that the cache has"]


def test_a_point_that_the_cache_has_takes_few_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer than its run takes in Python; what it shares with all points was done by the first."""
    monkeypatch.setenv("KERNBENCH_CACHE", str(tmp_path))
    monkeypatch.setattr(loaded, "loaded_files", lambda *_: {})  # a user has not loaded all tests
    with loaded_tool("bench_sweep") as tool:
        asked = tool.plan(3)
        jobs = [job_of(asked, point) for point in points_of(asked)]
        for job in jobs:
            evaluate(job, plugins=tool.PLUGINS)
        again = evaluate(jobs[1], plugins=tool.PLUGINS)
        assert again["from_cache"], again["cache_note"]
        calls = count_calls(lambda: evaluate(jobs[1], plugins=tool.PLUGINS))
        uncached = [{**job, "cached": False} for job in jobs]
        alone = count_calls(lambda: evaluate(uncached[1], plugins=tool.PLUGINS))
    assert calls <= 14_000  # a third of them take the answer from its JSON
    assert calls < alone


ALL_IMPORTED = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import bench_sweep
from kernbench_builtin.sweeps import planned
from kernbench_builtin.sweeps.evaluate import evaluate, import_all, job_of
asked = planned(bench_sweep.plan(2), bench_sweep.PLUGINS)
import_all(bench_sweep.PLUGINS)
before = set(sys.modules)
record = evaluate({**job_of(asked.plan, asked.points[0]), "cached": False}, plugins=bench_sweep.PLUGINS)
print(record["status"], *sorted(set(sys.modules) - before))
"""


def test_a_process_that_is_forked_has_nothing_to_import() -> None:
    """Else each would, with its first point: a third of a second."""
    done = subprocess.run(
        [sys.executable, "-c", ALL_IMPORTED, str(TOOL.parent)], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["ok"]
