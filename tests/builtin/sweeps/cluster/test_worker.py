"""What a worker does with points, without the network between: each in a process of its own, elsewhere."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernbench_builtin.sweeps.executors.cluster import worker as worker_module
from kernbench_builtin.sweeps.executors.cluster.payload import installed
from kernbench_builtin.sweeps.executors.cluster.worker import end, evaluate_job, prepare
from kernbench_core.errors import UsageError
from kernbench_core.plugins import load_plugins

SWEEP = "a sweep"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a machine that is none, so that a point needs no models to fail."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "wrong.yaml").write_text("no: machine\n")
    (project / "mine.py").write_text("def bench(rt): ...\n")
    return project


@pytest.fixture
def worker(project: Path) -> Iterator[Callable[..., Any]]:
    """Give a worker to which a sweep was sent that wants plug-ins as they are here, and `more`; it leaves no files."""
    folder = project.parent / "worker"
    folder.mkdir()
    worker = SimpleNamespace(local_directory=str(folder), address="tcp://w:1")

    def given(**more: str) -> Any:
        environment = dict.fromkeys(("KERNBENCH_PLUGIN", "KERNBENCH_NO_PLUGIN", "KERNBENCH_STRICT_PLUGINS"), "")
        told = {"installed": {**installed(load_plugins()), **more}, "start": str(project), "environment": environment}
        with zipfile.ZipFile(folder / f"{SWEEP}.zip", "w") as packed:
            packed.writestr("sweep.json", json.dumps(told))
            for path in project.iterdir():
                packed.write(path)
        return worker

    yield given
    end(SWEEP, worker)
    assert [*folder.iterdir()] == []
    assert evaluate_job(SWEEP, {}, worker) == {}  # it was not begun anew
    worker_module._sweeps.clear()


def _job(project: Path) -> dict[str, Any]:
    run = {"bench": str(project / "mine.py"), "arguments": [], "topology": str(project / "wrong.yaml")}
    run |= {"components": None, "set": {}, "params": {}, "options": {}}
    job = {"key": "k", "index": 3, "values": {"n": 1}, "run": run}
    return {**job, "objectives": [], "figures_file": None, "cached": False}


def test_a_point_has_its_record_and_paths_are_those_from_where_it_came(
    project: Path, worker: Callable[..., Any]
) -> None:
    here = worker()
    (project / "wrong.yaml").unlink()
    prepare(SWEEP, here)
    record = evaluate_job(SWEEP, _job(project), here)
    assert (record["key"], record["index"], record["values"], record["status"]) == ("k", 3, {"n": 1}, "error")
    sentences = record["error"]["sentence"].splitlines()
    assert f"{project / 'wrong.yaml'}:1:1: no must be a known key." in sentences[-1]
    assert all(sentence.startswith(str(project / "wrong.yaml")) for sentence in sentences)


def test_nothing_is_evaluated_where_something_else_is_installed(project: Path, worker: Callable[..., Any]) -> None:
    here = worker(**{"plug-in 'acme'": "of acme-models 1.2 with files 1"})
    for ask in (lambda: prepare(SWEEP, here), lambda: evaluate_job(SWEEP, _job(project), here)):
        with pytest.raises(UsageError) as caught:
            ask()
        assert str(caught.value) == (
            "worker tcp://w:1 must have plug-in 'acme' of acme-models 1.2 with files 1, as is here, not left out; "
            "install the same there, and start the worker again."
        )


def test_a_worker_whose_process_ends_cannot_begin(
    project: Path, worker: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "_differs", lambda _: os._exit(3))
    with pytest.raises(UsageError) as caught:
        prepare(SWEEP, worker())
    assert str(caught.value) == (
        "worker tcp://w:1 cannot begin a sweep: the process of this point ended with exit code 3 and without a result; "
        "a bench must return, not end its process."
    )
