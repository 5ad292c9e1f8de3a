"""A whole sweep, as notebooks and the command line call it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import evolve, frozen

from kernbench_builtin.sweeps.axes import TOPOLOGY
from kernbench_builtin.sweeps.constraints import kept_points
from kernbench_builtin.sweeps.drive import OnPoints, OnRecord, carry_out, closing, digests_of
from kernbench_builtin.sweeps.evaluate import evaluate, import_all
from kernbench_builtin.sweeps.executors.base import PATIENCE_S, Executor
from kernbench_builtin.sweeps.executors.local import LocalExecutor
from kernbench_builtin.sweeps.expressions import Expression
from kernbench_builtin.sweeps.fidelity import CHUNK, Screening, carry_out_screened, screening_of
from kernbench_builtin.sweeps.folder import SweepFolder, open_sweep
from kernbench_builtin.sweeps.objectives import parse_objective
from kernbench_builtin.sweeps.plan import SweepPlan
from kernbench_builtin.sweeps.planning.check import PlanCheck
from kernbench_builtin.sweeps.points import SweepPoint, point_of, points_of
from kernbench_builtin.sweeps.results import SweepResult
from kernbench_builtin.sweeps.search.method import SearchMethod, parse_search
from kernbench_core.errors import ConfigError, UsageError
from kernbench_core.runs.backends import open_backend
from kernbench_core.units import parse_quantity

if TYPE_CHECKING:
    from kernbench_core.plugins import Plugins

#: So many trials of `tpe` are asked for at once on a cluster, whose size may change.
_AT_ONCE: Final = 8


@frozen
class PlannedSweep:
    """A plan that was checked, with its points, and how many its constraints left out.

    Of a `search` the points are not known; there are some that have the first values of all axes on each machine, and
    the last. `allowed` says whether all constraints hold of a point.
    """

    plan: SweepPlan
    points: tuple[SweepPoint, ...]
    skipped: int = 0
    search: SearchMethod | None = None
    screening: Screening | None = None
    allowed: Callable[[SweepPoint], bool] = lambda _: True

    @property
    def most(self) -> int:
        """How many runs there are at most."""
        if self.search is not None:
            return self.search.trials
        full = 0 if self.screening is None else self.screening.count(len(self.points))
        return len(self.points) + full


def planned(plan: SweepPlan, plugins: Plugins, function: Callable[..., object] | None = None) -> PlannedSweep:
    """Lay out the points of a plan, and check it; raise the KernbenchError that says all that is wrong with it.

    A `function` is the bench, of which the plan has the name only.
    """
    check = PlanCheck(plan, plugins, function)
    where, problems = check.expressions()
    if plan.search is not None:
        return _searched(plan, check, where, problems)
    laid = tuple(points_of(plan))
    points = laid if problems else tuple(kept_points(laid, where, check.names))
    problems += check.values([point.values for point in points or laid])
    if problems:
        raise ConfigError(*problems)
    if not points:
        raise UsageError(
            f"a sweep must have a point, and --where leaves out all {len(laid):,}; give other values, or drop one."
        )
    screening = None if plan.fidelity is None else screening_of(plan, _chunk_bytes(check, points))
    return PlannedSweep(plan, points, len(laid) - len(points), screening=screening)


def _searched(plan: SweepPlan, check: PlanCheck, where: list[Expression], problems: list[str]) -> PlannedSweep:
    """Check a plan whose points are searched for."""
    assert plan.search is not None, "asked of such plans only"
    method = parse_search(plan.search)
    for excluded, option in ((plan.fidelity, "--fidelity"), (plan.sample != "grid", "--sample")):
        if excluded:
            raise UsageError(
                f"--search chooses the points itself, one after the other; leave out {option} or --search."
            )
    if not plan.axes or not plan.objectives:
        missing = "something to vary, as -p M=1..64" if not plan.axes else "an --objective, as time"
        raise UsageError(f"--search must have {missing}; give it.")
    first, last = ({axis.name: axis.looked_at()[at] for axis in plan.axes} for at in (0, -1))
    machines = plan.axis(TOPOLOGY)
    ends = [first] if machines is None else [{**first, TOPOLOGY: name} for name in machines.values]
    ends += [] if last in ends else [last]
    problems += check.values(ends)
    if problems:
        raise ConfigError(*problems)

    def allowed(point: SweepPoint) -> bool:
        return bool(list(kept_points([point], where, check.names)))

    points = tuple(point_of(plan, values, at) for at, values in enumerate(ends))
    return PlannedSweep(plan, points, search=method, allowed=allowed)


def _chunk_bytes(check: PlanCheck, points: Sequence[SweepPoint]) -> int:
    """Return the largest transfer of the machines that points run on, in B."""
    machines = {check.plan.run_of(point.values)["topology"]: point for point in points}
    found = (check.names.of(point.values).get(CHUNK) for point in machines.values())
    return max((int(parse_quantity(text, "size")) for text in found if text is not None), default=0)


def run_planned(
    sweep: PlannedSweep,
    plugins: Plugins,
    *,
    folder: str | Path | None = None,
    processes: int | None = None,
    scheduler: str | None = None,
    patience_s: float = PATIENCE_S,
    retry_failed: bool = False,
    retry_changed: bool = False,
    function: Callable[..., object] | None = None,
    begin: Callable[[SweepFolder], None] = lambda _: None,
    on_points: OnPoints = lambda _: None,
    on_record: OnRecord = lambda _: None,
) -> SweepResult:
    """Carry out a checked sweep, in a folder that is removed where none is given; go on with one that is there.

    `begin` is called with the folder before the first point, `on_points` with the points when they are known, in their
    order and before any of them runs, and `on_record` with each new record once it is kept. Points are carried out by
    `processes` of this machine, or by the workers of the Dask `scheduler` at an address; when that is not there yet, or
    has no workers, it is waited for at most `patience_s`. A `function` is the bench that `planned` was given.
    Raise UsageError, before anything runs or is written, where this machine is to carry points out and does not have
    the backend that they ask for.
    """
    if scheduler is None:
        open_backend(plugins, sweep.plan.options.get("backend", "numpy"))  # which no point could have where this fails
        count = min(processes or cores(), sweep.most)
        import_all(plugins)
        functions = {} if function is None else {sweep.plan.bench: function}
        executor: Executor = LocalExecutor(count, work=partial(evaluate, plugins=plugins, functions=functions))
    else:
        from kernbench_builtin.sweeps.executors.cluster import ClusterExecutor

        executor = ClusterExecutor.for_plan(sweep.plan, plugins, scheduler, patience_s)
    digests = {} if folder is None else digests_of(sweep.plan, plugins)
    with (
        _folder(folder) as path,
        open_sweep(
            path, sweep.plan, digests, most=sweep.most, kept=folder is not None, retry_changed=retry_changed
        ) as opened,
    ):
        begin(opened)
        if sweep.search is not None:
            at_once = processes or (cores() if scheduler is None else _AT_ONCE)
            return _search(sweep, opened, executor, on_points, on_record, at_once, retry_failed)
        if sweep.screening is not None:
            return carry_out_screened(
                opened, sweep.points, sweep.screening, executor, on_points, on_record, retry_failed=retry_failed
            )
        on_points(sweep.points)
        return carry_out(opened, sweep.points, executor, on_record, retry_failed=retry_failed)


def _search(
    sweep: PlannedSweep, opened: SweepFolder, executor: Executor, on_points: OnPoints, on_record: OnRecord,
    at_once: int, retry_failed: bool,
) -> SweepResult:  # fmt: skip
    """Carry out a search; the outcome of its trials is kept in the result."""
    from kernbench_builtin.sweeps.search.searching import PointSearch
    from kernbench_builtin.sweeps.search.study import PointStudy

    assert sweep.search is not None, "asked of such sweeps only"
    plan = sweep.plan
    maximise = [parse_objective(text).maximise for text in plan.objectives]
    with closing(opened, executor):
        study = PointStudy(sweep.search, plan.axes, maximise, plan.seed)
        outcome = PointSearch(
            opened, study, sweep.search, executor, sweep.allowed, on_points, on_record, at_once, retry_failed
        ).run()
    return evolve(opened.sweep(), notes=(str(outcome),))


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
