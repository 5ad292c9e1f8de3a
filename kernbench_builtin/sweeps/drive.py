"""Carry a sweep out: the points that have no record yet go to an executor, and each record goes to the folder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from kernbench_builtin.sweeps.axes import PARAM, TOPOLOGY
from kernbench_builtin.sweeps.evaluate import job_of
from kernbench_builtin.sweeps.executors.base import Executor, PointJob
from kernbench_builtin.sweeps.folder import SweepFolder
from kernbench_builtin.sweeps.plan import TRITON, SweepPlan
from kernbench_builtin.sweeps.points import SweepPoint
from kernbench_builtin.sweeps.results import SweepResult
from kernbench_builtin.sweeps.table import write_tables
from kernbench_core.errors import KernbenchError
from kernbench_core.host.sources import file_and_function, read_sources

if TYPE_CHECKING:
    from kernbench_core.plugins import Plugins

OnPoints: TypeAlias = Callable[[Sequence[SweepPoint]], None]
"""Called with points when it is known that they are of a sweep."""
OnRecord: TypeAlias = Callable[[Mapping[str, Any]], None]
"""Called with the record of a point once it is kept."""


def carry_out(
    folder: SweepFolder, points: Iterable[SweepPoint], executor: Executor, on_record: OnRecord, *,
    retry_failed: bool = False,
) -> SweepResult:  # fmt: skip
    """Carry out the points that have no record, and with `retry_failed` those that failed; return all that there is.

    Each record is in the folder before `on_record` is called with it.
    """
    with closing(folder, executor):
        record_all(folder, jobs_left(folder, folder.plan, points, retry_failed), executor, on_record)
    return folder.sweep()


@contextmanager
def closing(folder: SweepFolder, executor: Executor) -> Iterator[None]:
    """End the executor after the block, and write the tables of what is recorded, as far as they can be.

    That is done however the block ends, with Ctrl-C or a full disk.
    """
    try:
        yield
    finally:
        executor.close()
        write_tables(folder)


def record_all(folder: SweepFolder, jobs: Iterable[PointJob], executor: Executor, on_record: OnRecord) -> None:
    """Carry out jobs; each record is in the folder before `on_record` is called with it."""
    for record in executor.run(jobs):
        folder.put(record)
        on_record(record)


def jobs_left(
    folder: SweepFolder, plan: SweepPlan, points: Iterable[SweepPoint], retry_failed: bool = False, **more: Any
) -> Iterator[dict[str, Any]]:
    """Yield the jobs of those points of a plan that have no record, with `retry_failed` of those that failed, too.

    Each job has `more` beside.
    """
    for point in points:
        record = folder.records.get(point.key)
        if record is None or (retry_failed and is_failed(record)):
            yield job_of(plan, point) | {"code": folder.code} | more


def is_failed(record: Mapping[str, Any]) -> bool:
    """Whether a point did not come to its end."""
    return record["status"] not in ("ok", "wrong")


def digests_of(plan: SweepPlan, plugins: Plugins) -> dict[str, str]:
    """Return the SHA-256, in hex, of each file that a plan names and that is there, and of each package that computes.

    Those are the bench and the file of figures with their own modules, machines with the files that they are based on,
    and what parameters and arguments name as files. Of a package whose files are changed while this process goes on,
    there is none.
    """
    from kernbench_core.cache.dependencies import NotCacheable, code_digests

    found: dict[str, str] = {}
    with suppress(NotCacheable):
        found |= code_digests(plugins)
    for path in dict.fromkeys(_files_of(plan, plugins)):
        if os.path.isfile(path):  # noqa: PTH113 - which takes any text
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _files_of(plan: SweepPlan, plugins: Plugins) -> Iterator[Path]:
    """Yield the files that a plan names, there or not."""
    from kernbench_core.runs.bench_run import configure
    from kernbench_core.runs.preset_files import PresetFiles

    for named in filter(None, (plan.bench.removeprefix(TRITON), plan.figures)):
        yield from _with_own_modules(named)
    if plan.components is not None:
        yield Path(plan.components)
    presets = PresetFiles(plugins.topologies)
    shipped = {presets[name].parent for name in presets}
    machines = plan.axis(TOPOLOGY)
    for topology in [plan.topology] if machines is None else machines.values:
        with suppress(KernbenchError):  # which its points have, too
            sources = map(Path, configure(plugins, topology).sources)
            yield from (path for path in sources if path.parent not in shipped)
    varied = (value for axis in plan.axes if axis.target == PARAM for value in axis.values)
    behind = (text.partition("=")[2] for text in plan.arguments)  # "--config=a.txt"
    for value in (*plan.params.values(), *plan.arguments, *behind, *varied):
        if isinstance(value, str):
            yield from _with_own_modules(value) if file_and_function(value) else [Path(value)]


def _with_own_modules(named: str) -> Iterator[Path]:
    """Yield a file of Python, as it is named, and the modules that it imports from its own folder."""
    file = file_and_function(named)
    if file is not None and os.path.isfile(file[0]):  # noqa: PTH113
        yield from (Path(file[0]).parent / name for name in read_sources(Path(file[0])).files)
