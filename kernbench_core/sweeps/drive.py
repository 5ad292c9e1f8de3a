"""Carry a sweep out: the points that have no record yet go to an executor, and each record goes to the folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kernbench_core.host.sources import file_and_function
from kernbench_core.sweeps.evaluate import job_of
from kernbench_core.sweeps.executors.base import Executor
from kernbench_core.sweeps.folder import SweepFolder
from kernbench_core.sweeps.plan import TRITON, SweepPlan
from kernbench_core.sweeps.points import SweepPoint
from kernbench_core.sweeps.results import SweepResult
from kernbench_core.sweeps.table import write_tables

_Tell = Callable[[Mapping[str, Any]], None]


def carry_out(
    folder: SweepFolder, points: Iterable[SweepPoint], executor: Executor, tell: _Tell, *, retry_failed: bool = False
) -> SweepResult:
    """Carry out the points that have no record, and with `retry_failed` those that failed; return all that there is.

    Each record is in the folder before `tell` is called with it. However this ends, with Ctrl-C or a full disk, the
    tables of what is recorded are written, as far as they can be.
    """
    try:
        for record in executor.run(_jobs(folder, points, retry_failed)):
            folder.put(record)
            tell(record)
    finally:
        executor.close()
        write_tables(folder)
    return folder.sweep()


def _jobs(folder: SweepFolder, points: Iterable[SweepPoint], retry_failed: bool) -> Iterator[dict[str, Any]]:
    for point in points:
        record = folder.records.get(point.key)
        if record is None or (retry_failed and record["status"] not in ("ok", "wrong")):
            yield job_of(folder.plan, point)


def digests_of(plan: SweepPlan) -> dict[str, str]:
    """Return the SHA-256, in hex, of each file that a plan names and that is there."""
    topology = plan.axis("topology")
    names: list[object] = [plan.components, plan.figures, plan.bench.removeprefix(TRITON)]
    names += [plan.topology] if topology is None else list(topology.values)
    found = {}
    for name in filter(None, map(str, filter(None, names))):
        named = file_and_function(name)
        path = Path(name if named is None else named[0])
        if path.suffix and path.is_file():
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
