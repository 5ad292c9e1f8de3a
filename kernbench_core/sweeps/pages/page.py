"""The page of a sweep, made of its plan and its records."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kernbench_core.errors import KernbenchError, UsageError
from kernbench_core.report import MovedBy, SweepPage, SweptObjective, SweptParameter
from kernbench_core.sweeps.axes import Axis, setting_text, value_text
from kernbench_core.sweeps.constraints import NamedValues, kept_points
from kernbench_core.sweeps.expressions import Expression
from kernbench_core.sweeps.folder import read_sweep
from kernbench_core.sweeps.objectives import Objective, parse_objective
from kernbench_core.sweeps.objectives.figures import ALIASES
from kernbench_core.sweeps.pages.commands import page_command, run_command
from kernbench_core.sweeps.pareto import pareto_front
from kernbench_core.sweeps.plan import SweepPlan
from kernbench_core.sweeps.points import points_of
from kernbench_core.sweeps.ranges import in_numbers
from kernbench_core.sweeps.results import SweepResult
from kernbench_core.sweeps.sensitivity import Sensitivity, sensitivities

if TYPE_CHECKING:
    from kernbench_core.plugins import Plugins

#: How many of the digits of a key stand in commands and names; a key of 48 bits is enough to tell points apart.
SHORT_KEY: Final = 12
#: So many values of an axis are named on the page.
_NAMED: Final = 8
#: From this factor between values on they stand apart by factors.
_WIDE: Final = 8.0
_MEASURE: Final = (
    "The share of an objective's variance that lies between the means of a parameter's values, over the points that "
    "ran: 100% is a parameter that alone decides it; what parameters do only together is in none of them."
)

_Record = Mapping[str, Any]


def sweep_page(
    sweep: SweepResult, folder: str, plugins: Plugins, link: Callable[[_Record], str] = lambda _: ""
) -> SweepPage:
    """Return the page of a sweep; `folder` is what its user calls it, `link` leads to the page of a point, or is ""."""
    planned, skipped = _counted(sweep.plan, plugins)
    plan, records = sweep.plan, sweep.records
    objectives = [parse_objective(text) for text in plan.objectives] or [parse_objective("time_ns")]
    ran = [record for record in records if record["status"] == "ok"]
    return SweepPage(
        name=f"{plan.bench}: {len(records):,} {'point' if len(records) == 1 else 'points'}",
        facts=list(_facts(plan)),
        parameters=[SweptParameter(axis.name, _is_wide(axis)) for axis in plan.axes],
        objectives=[SweptObjective(each.name, each.maximise, _figure(each)) for each in objectives],
        points=[_point(record, objectives) for record in records],
        front=_front(records, objectives),
        commands=[
            (run_command(plan, record["values"]), page_command(folder, record["key"][:SHORT_KEY])) for record in records
        ],
        links=[link(record) for record in records],
        moved_by=list(_moved(plan, ran, objectives)),
        moved_of=_MEASURE + _doubts(plan, records, ran),
        planned=planned,
        skipped=skipped,
        notes=list(_notes(plan)),
    )


def read_sweep_page(
    folder: Path, called: str, plugins: Plugins, link: Callable[[_Record], str] = lambda _: ""
) -> SweepPage:
    """Read a sweep into its page; UsageError where something of it is damaged, or of another version."""
    try:
        return sweep_page(read_sweep(folder), called, plugins, link)
    except KernbenchError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            f"the sweep in {str(folder)!r} must be as `kernbench sweep` wrote it, and its plan or a record is damaged "
            "or was changed; begin it again in another folder, and the cache serves what is the same."
        ) from error


def _figure(objective: Objective) -> str:
    """Return the figure that an objective is, where it is nothing more."""
    return ALIASES.get(objective.expression.text, objective.expression.text)


def front_of(sweep: SweepResult) -> list[_Record]:
    """Return the points that none is better than in all objectives; without objectives the fastest ones."""
    objectives = [parse_objective(text) for text in sweep.plan.objectives] or [parse_objective("time_ns")]
    best = _front(sweep.records, objectives)
    return [record for record, is_best in zip(sweep.records, best, strict=True) if is_best]


#: What pages read of a record, and of which type it is.
_FORM: Final = {"key": str, "index": int, "status": str, "values": dict, "figures": dict, "objectives": dict}


def _point(record: _Record, objectives: Sequence[Objective]) -> dict[str, Any]:
    wrong = [name for name, kind in _FORM.items() if not isinstance(record[name], kind)]
    if wrong:
        raise TypeError(f"{wrong[0]} of a record")
    error = record["error"]
    named = {each.name: _objective(record, each) for each in objectives}
    return {**record, "objectives": named, "error": None if error is None else error["sentence"]}


def _objective(record: _Record, objective: Objective) -> Any:
    """Return what a record has of an objective; a sweep without any is after the time."""
    return record["objectives"].get(objective.name, record["figures"].get(objective.name))


def _number(value: Any) -> float:
    """Return a figure as a number; records have names for those that JSON has not."""
    return float(value) if isinstance(value, int | float) or value in ("inf", "-inf") else math.nan


def _front(records: Sequence[_Record], objectives: Sequence[Objective]) -> list[bool]:
    rows = [
        [_number(_objective(record, each)) if record["status"] == "ok" else math.nan for each in objectives]
        for record in records
    ]
    values = np.array(rows, np.float64).reshape(len(records), len(objectives))
    return [bool(each) for each in pareto_front(values, [each.maximise for each in objectives])]


def _moved(plan: SweepPlan, ran: Sequence[_Record], objectives: Sequence[Objective]) -> Iterator[MovedBy]:
    numbers = {each.name: np.array([_finite(_objective(record, each)) for record in ran]) for each in objectives}
    for found in sensitivities([record["values"] for record in ran], numbers):
        if math.isnan(found.share):
            yield MovedBy(found.parameter, found.objective, None, _why(found, numbers[found.objective]))
            continue
        ends = ((found.lowest, value_text(found.lowest_at)), (found.highest, value_text(found.highest_at)))
        chance = 0.0 if plan.sample == "grid" and not plan.search else (found.groups - 1) / (found.points - 1)
        yield MovedBy(found.parameter, found.objective, found.share, chance=chance, ends=ends)


def _finite(value: Any) -> float:
    number = _number(value)
    return number if math.isfinite(number) else math.nan


def _why(found: Sensitivity, numbers: np.ndarray[Any, Any]) -> str:
    """Say why nothing is known of what a parameter moves."""
    known = numbers[~np.isnan(numbers)]
    if known.size == 0:
        return "no point has this objective"
    if found.groups < 2:
        return "it has one value"
    return "the objective is the same at all points" if np.ptp(known) == 0 else "no two points share a value of it"


def _doubts(plan: SweepPlan, records: Sequence[_Record], ran: Sequence[_Record]) -> str:
    """Say what the shares are to be taken with."""
    told = ""
    if plan.search:
        told = " The search chose where to look: shares say what moved among its points."
    elif plan.sample != "grid":
        told = " Of points that were drawn, a parameter that moves nothing has a small share, too, by chance."
    if plan.sample == "grid" and not plan.search and (plan.where or len(ran) < len(records)):
        why = [*(["failed"] if len(ran) < len(records) else []), *(["were left out"] if plan.where else [])]
        told += f" Points of the grid {' and '.join(why)}: parameters go together then, and their shares overlap."
    return told


def _counted(plan: SweepPlan, plugins: Plugins) -> tuple[int | None, int]:
    """Return how many points a plan asks for, None where nobody knows, and how many its constraints leave out."""
    if plan.search:
        return None, 0
    if plan.sample == "grid" and not plan.where:
        return math.prod(len(axis.values) for axis in plan.axes), 0
    laid = tuple(points_of(plan))
    if not plan.where:
        return len(laid), 0
    names = NamedValues(plan, plugins, None)  # the bench itself is not opened: whoever looks at a page runs nothing
    where = [Expression(text, "--where") for text in plan.where]
    try:
        kept = sum(1 for _ in kept_points(laid, where, names))
    except KernbenchError:  # of a name that only the bench knows
        kept = None
    return kept, 0 if kept is None else len(laid) - kept


def _is_wide(axis: Axis) -> bool:
    """Whether the values of an axis are positive and far apart, so that factors tell more than differences."""
    numbers = [in_numbers(value) for value in axis.looked_at()]
    known = [number for number in numbers if number is not None]
    return len(known) == len(numbers) > 0 and min(known) > 0 and max(known) / min(known) >= _WIDE


def _facts(plan: SweepPlan) -> Iterator[tuple[str, str]]:
    yield "bench", plan.bench
    if plan.axis("topology") is None:
        yield "machine", plan.topology
    if plan.components:
        yield "components", plan.components
    fixed = [f"{name}={setting_text(value)}" for name, value in plan.set.items()]
    fixed += [f"{name}={value_text(value)}" for name, value in plan.params.items()]
    if fixed:
        yield "the same in all", ", ".join(fixed)
    for axis in plan.axes:
        yield axis.name, _values(axis)
    yield "objectives", ", ".join(plan.objectives) or "time_ns"
    if plan.where:
        yield "constraints", "; ".join(plan.where)
    yield "points", _sampling(plan)
    if plan.options:
        yield "of every run", ", ".join(f"{name}={value}" for name, value in plan.options.items())


def _values(axis: Axis) -> str:
    if axis.range is not None:
        return "from {} to {}".format(*map(value_text, axis.looked_at()))
    named = [value_text(value) for value in axis.values[:_NAMED]]
    return _listed(named, len(axis.values) - len(named))


def _listed(named: Iterable[str], more: int) -> str:
    return ", ".join([*named, *([f"and {more} more"] if more else [])])


def _sampling(plan: SweepPlan) -> str:
    if plan.search:
        return f"searched by {plan.search}"
    how, _, count = plan.sample.partition(":")
    drawn = {"random": "drawn at random", "lhs": "of a Latin hypercube"}
    return "a grid" if how == "grid" else f"{count} {drawn[how]}, seed {plan.seed}"


def _notes(plan: SweepPlan) -> Iterator[str]:
    if plan.options.get("data") is False:
        yield "All points ran without data (--no-data): what depends on data, as errors, is not known."
