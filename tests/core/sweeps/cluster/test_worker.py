"""What a worker does with points, without the network between: each in a process of its own, elsewhere."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernbench_core.plugins import load_plugins
from kernbench_core.sweeps.executors.cluster import sameness, worker
from kernbench_core.sweeps.executors.cluster.luggage import Luggage
from kernbench_core.sweeps.executors.cluster.worker import evaluate_job, prepare

SWEEP = "a sweep"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a machine that is none, so that a point needs no models to fail."""
    project = tmp_path_factory.mktemp("project")
    (project / "wrong.yaml").write_text("no: machine\n")
    (project / "mine.py").write_text("def bench(rt): ...\n")
    return project


@pytest.fixture(scope="module")
def installed(project: Path) -> Iterator[dict[str, Any]]:
    """What a worker that was got ready has installed; it leaves nothing."""
    here = project.parent / "worker"
    here.mkdir()
    files = {str(path): path.read_bytes() for path in project.iterdir()}
    luggage = Luggage(files, str(project), sweep=SWEEP)
    yield asyncio.run(prepare(luggage.packed(), SimpleNamespace(local_directory=str(here))))
    worker.end(SWEEP)
    assert [*here.iterdir()] == []


def _job(project: Path, **options: Any) -> dict[str, Any]:
    run = {"bench": str(project / "mine.py"), "arguments": [], "topology": str(project / "wrong.yaml")}
    run |= {"components": None, "set": {}, "params": {}, "options": options}
    job = {"key": "k", "index": 3, "values": {"n": 1}, "run": run}
    return {**job, "objectives": [], "figures_file": None, "cached": False}


def test_what_is_installed_there_is_what_is_installed_here(installed: dict[str, Any]) -> None:
    assert installed == sameness.installed(load_plugins())


def test_a_point_has_its_record_and_paths_are_those_from_where_it_came(
    project: Path, installed: dict[str, Any]
) -> None:
    answer = evaluate_job(SWEEP, _job(project))
    assert answer.keys() == {"record"}
    record = answer["record"]
    assert (record["key"], record["index"], record["values"], record["status"]) == ("k", 3, {"n": 1}, "error")
    sentences = record["error"]["sentence"].splitlines()
    assert f"{project / 'wrong.yaml'}:1:1: no must be a known key." in sentences[-1]
    assert all(sentence.startswith(str(project / "wrong.yaml")) for sentence in sentences)


def test_workers_of_one_process_get_ready_once(project: Path, installed: dict[str, Any], tmp_path: Path) -> None:
    before = _evaluator()
    luggage = Luggage({}, str(project), sweep=SWEEP)
    assert asyncio.run(prepare(luggage.packed(), SimpleNamespace(local_directory=str(tmp_path)))) == installed
    assert _evaluator() == before
    assert [*tmp_path.iterdir()] == []


def test_another_process_evaluates_behind_one_that_ended(project: Path, installed: dict[str, Any]) -> None:
    before = _evaluator()
    os.kill(before, signal.SIGKILL)
    assert evaluate_job(SWEEP, _job(project)) == {"ended": True}
    assert evaluate_job(SWEEP, _job(project)).keys() == {"record"}
    assert _evaluator() != before


def _evaluator() -> int:
    (only,) = worker._sweeps[SWEEP].idle
    return only._process.pid


def test_a_sweep_that_is_not_known_has_no_answer(project: Path) -> None:
    assert evaluate_job("another", _job(project)) == {}
    worker.end("another")


def test_files_that_cannot_be_laid_down_leave_nothing(tmp_path: Path) -> None:
    luggage = Luggage({"/a": b"", "/a/b": b""}, "/", sweep="broken")
    with pytest.raises(OSError):
        asyncio.run(prepare(luggage.packed(), SimpleNamespace(local_directory=str(tmp_path))))
    assert [*tmp_path.iterdir()] == []
    assert evaluate_job("broken", {}) == {}
