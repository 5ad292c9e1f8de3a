"""What runs on a worker: Dask's process only waits; points are evaluated by processes that it forks, as on one machine.

A bench may do to its process what it likes. What a sweep needs is laid down when its first job comes.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from kernbench_builtin.sweeps.evaluate import evaluate, import_all, warm
from kernbench_builtin.sweeps.executors.cluster.payload import (
    difference,
    digest_of,
    installed,
    sent_from,
    sent_to,
    unpack,
)
from kernbench_builtin.sweeps.executors.local import LocalExecutor
from kernbench_core.errors import UsageError, in_words

#: A job of no point, by which a worker gets ready.
_NO_POINT: Mapping[str, Any] = {"run": {"options": {}}, "objectives": ()}


@attrs.define(eq=False)
class _Sweep:
    """A sweep on this worker: the folder of its files, what else was sent, and its processes, which may have no job."""

    folder: Path
    told: Mapping[str, Any]
    executors: list[LocalExecutor] = attrs.field(factory=list)
    idle: list[LocalExecutor] = attrs.field(factory=list)


#: The sweeps of this process, by name; None for one that is over.
_sweeps: dict[str, _Sweep | None] = {}
_lock = threading.Lock()


def prepare(name: str, dask_worker: Any) -> None:
    """Get ready for a sweep; raise UsageError where something else is installed here, or no process can be had."""
    if failed := evaluate_job(name, _NO_POINT, dask_worker):
        raise UsageError(f"worker {dask_worker.address} cannot begin a sweep: {failed['error']['sentence']}")


def evaluate_job(name: str, job: Mapping[str, Any], dask_worker: Any) -> dict[str, Any]:
    """Return the record of a job of a sweep; raise UsageError where something else is installed here."""
    with _lock:
        if name not in _sweeps:
            import_all()
            for package in {name.partition(".")[0] for name in sys.modules if name.startswith("kernbench_")}:
                digest_of(package)  # as it is now, when it is loaded
            folder = Path(dask_worker.local_directory, name).resolve()
            _sweeps[name] = _Sweep(folder, unpack(folder.with_suffix(".zip"), folder))
        sweep = _sweeps[name]
        if sweep is None:
            return {}
        if not sweep.idle:
            sweep.idle.append(LocalExecutor(1, ahead=0, work=functools.partial(_evaluate, sweep.folder, sweep.told)))
            sweep.executors += sweep.idle
        executor = sweep.idle.pop()
    (record,) = executor.run([job])
    with _lock:
        sweep.idle.append(executor)
        if _sweeps[name] is None:  # it ended meanwhile
            executor.close()
    if "differs" in record:
        raise UsageError(f"worker {dask_worker.address} {record['differs']}")
    return record


def end(name: str, dask_worker: Any) -> None:
    """Stop what is evaluated for a sweep, now and later, and remove its files."""
    with _lock:
        sweep, _sweeps[name] = _sweeps.get(name), None
    Path(dask_worker.local_directory, f"{name}.zip").unlink(missing_ok=True)
    if sweep is not None:
        for executor in sweep.executors:
            executor.close()
        shutil.rmtree(sweep.folder, ignore_errors=True)


def _evaluate(folder: Path, told: Mapping[str, Any], job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a job, in a process of its own, or what differs there."""
    os.chdir(told["start"])
    os.environ.update(told["environment"])
    sentence = _differs(tuple(told["installed"].items()))
    if sentence is not None:
        return {"differs": sentence}
    return sent_from(folder, evaluate(sent_to(folder, job), warm())) if job.keys() - _NO_POINT.keys() else {}


@functools.cache
def _differs(wanted: tuple[tuple[str, str], ...]) -> str | None:
    """Return what is other in this process than is wanted, None where nothing is; it is looked at once."""
    try:
        return difference(installed(warm()), dict(wanted))
    except Exception as error:
        return f"must be able to load its plug-ins, but {in_words(error)}"
