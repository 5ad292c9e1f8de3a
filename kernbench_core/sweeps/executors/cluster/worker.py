"""What runs inside a Dask worker: it gets ready for a sweep, and has points evaluated in processes of their own.

A bench may do to its process what it likes; that of the worker only waits. Nothing is kept of a point. These functions
are found by their names on the worker, so what they take and return is plain data.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from kernbench_core.sweeps.executors.cluster.evaluator import Evaluator, EvaluatorEnded
from kernbench_core.sweeps.executors.cluster.luggage import unpack, unpacked, untravelled

#: How many sweeps a worker is ready for; the one that was used least recently is given up for another.
_MOST_SWEEPS: Final = 4


@attrs.define(eq=False)
class _Sweep:
    """One sweep on this worker: the folder of its files, and the processes that have no point to evaluate."""

    folder: Path
    start: Path
    environment: Mapping[str, str]
    installed: Mapping[str, Any]
    idle: list[Evaluator] = attrs.field(factory=list)
    busy: set[Evaluator] = attrs.field(factory=set)
    is_over: bool = False

    def end(self) -> None:
        """End its processes, and remove its files."""
        self.is_over = True
        for evaluator in (*self.idle, *self.busy):
            evaluator.kill()
        self.idle.clear()
        shutil.rmtree(self.folder, ignore_errors=True)


_sweeps: OrderedDict[str, _Sweep] = OrderedDict()
_lock = threading.Lock()
#: Held while a sweep is got ready: workers that are threads of one process share what that takes.
_preparing = threading.Lock()


def is_known() -> bool:
    """Tell whoever asks by this function that it can be found."""
    return True


async def prepare(luggage: Mapping[str, Any], dask_worker: Any = None) -> dict[str, Any]:
    """Unpack the files of a sweep and start a process that can evaluate its points; return what is installed there.

    Raise what unpacking raises, and EvaluatorEnded where the process ends at once.
    """
    folder = getattr(dask_worker, "local_directory", None)
    return await asyncio.to_thread(_prepare, luggage, folder)


def _prepare(luggage: Mapping[str, Any], beside: str | None) -> dict[str, Any]:
    with _preparing:
        known = _sweeps.get(luggage["sweep"]) or _prepared(luggage, beside)
    return dict(known.installed)


def _prepared(luggage: Mapping[str, Any], beside: str | None) -> _Sweep:
    folder = Path(tempfile.mkdtemp(prefix="kernbench-", dir=beside))
    try:
        start, environment = unpack(luggage, folder)
        evaluator = Evaluator(start, environment)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    with _lock:
        sweep = _sweeps[luggage["sweep"]] = _Sweep(folder, start, environment, evaluator.installed, [evaluator])
        given_up = [_sweeps.popitem(last=False)[1] for _ in range(len(_sweeps) - _MOST_SWEEPS)]
    for each in given_up:
        each.end()
    return sweep


def evaluate_job(name: str, job: Mapping[str, Any]) -> dict[str, Any]:
    """Return `{"record": …}` of a job of a sweep.

    Or `{"ended": True}` where the process ended that was to evaluate it, and `{}` where this worker is not ready for
    the sweep: it is another than the one that was prepared, or was told that the sweep is over.
    """
    with _lock:
        sweep = _sweeps.get(name)
        if sweep is None:
            return {}
        _sweeps.move_to_end(name)
        evaluator = sweep.idle.pop() if sweep.idle else None
    try:
        if evaluator is None:
            evaluator = Evaluator(sweep.start, sweep.environment)
        with _lock:
            sweep.busy.add(evaluator)
        if sweep.is_over:
            evaluator.kill()
        record = evaluator.evaluate(unpacked(job, sweep.folder))
    except EvaluatorEnded:
        if evaluator is not None:
            with _lock:
                sweep.busy.discard(evaluator)
            evaluator.kill()
        return {} if sweep.is_over else {"ended": True}
    with _lock:
        sweep.busy.discard(evaluator)
        if not sweep.is_over:
            sweep.idle.append(evaluator)
    return {"record": untravelled(record, sweep.folder)}


def end(name: str) -> None:
    """Stop what is evaluated for a sweep, and remove its files; nothing where it is not known."""
    with _lock:
        sweep = _sweeps.pop(name, None)
    if sweep is not None:
        sweep.end()
