"""A whole sweep, as notebooks and the command line call it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from kernbench_core.errors import ConfigError, UsageError
from kernbench_core.sweeps.constraints import kept_points
from kernbench_core.sweeps.drive import carry_out, digests_of
from kernbench_core.sweeps.evaluate import evaluate, import_all
from kernbench_core.sweeps.executors.base import Executor
from kernbench_core.sweeps.executors.local import LocalExecutor
from kernbench_core.sweeps.folder import SweepFolder, open_sweep
from kernbench_core.sweeps.plan import SweepPlan
from kernbench_core.sweeps.planning.check import PlanCheck
from kernbench_core.sweeps.points import SweepPoint, points_of
from kernbench_core.sweeps.results import SweepResult

if TYPE_CHECKING:
    from kernbench_core.plugins import Plugins


@frozen
class PlannedSweep:
    """A plan that was checked, with its points, and how many its constraints left out."""

    plan: SweepPlan
    points: tuple[SweepPoint, ...]
    skipped: int = 0


def planned(plan: SweepPlan, plugins: Plugins) -> PlannedSweep:
    """Lay out the points of a plan, and check it; raise the KernbenchError that says all that is wrong with it."""
    check = PlanCheck(plan, plugins)
    where, problems = check.expressions()
    laid = tuple(points_of(plan))
    points = laid if problems else tuple(kept_points(laid, where, check.names))
    problems += check.values([point.values for point in points or laid])
    if problems:
        raise ConfigError(*problems)
    if not points:
        raise UsageError(
            f"a sweep must have a point, and --where leaves out all {len(laid):,}; give other values, or drop one."
        )
    return PlannedSweep(plan, points, len(laid) - len(points))


def run_planned(
    sweep: PlannedSweep,
    plugins: Plugins,
    *,
    folder: str | Path | None = None,
    processes: int | None = None,
    scheduler: str | None = None,
    patience_s: float | None = None,
    retry_failed: bool = False,
    begin: Callable[[SweepFolder], None] = lambda _: None,
    tell: Callable[[Mapping[str, Any]], None] = lambda _: None,
) -> SweepResult:
    """Carry out a checked sweep, in a folder that is removed where none is given; go on with one that is there.

    `begin` is called with the folder before the first point, and `tell` with each record once it is kept. Points are
    carried out by `processes` of this machine, or by the workers of the Dask `scheduler` at an address; when that goes
    away, or has no workers, it is waited for at most `patience_s`, by default a minute.
    """
    if scheduler is None:
        count = min(processes or cores(), len(sweep.points))
        import_all()
        executor: Executor = LocalExecutor(count, work=partial(evaluate, plugins=plugins))
    else:
        from kernbench_core.sweeps.executors.cluster import ClusterExecutor

        executor = ClusterExecutor.for_plan(sweep.plan, plugins, scheduler, patience_s)
    with _folder(folder) as path, open_sweep(path, sweep.plan, digests_of(sweep.plan)) as opened:
        begin(opened)
        return carry_out(opened, sweep.points, executor, tell, retry_failed=retry_failed)


@contextmanager
def _folder(folder: str | Path | None) -> Iterator[Path]:
    if folder is not None:
        yield Path(folder)
        return
    with tempfile.TemporaryDirectory(prefix="kernbench-sweep-") as path:
        yield Path(path)


def cores() -> int:
    """Return how many processes this machine carries out at once."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
