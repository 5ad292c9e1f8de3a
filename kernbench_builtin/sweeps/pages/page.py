"""The page of a sweep, made of its plan and its records."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kernbench_builtin.pages.report import MovedBy, SweepPage, SweptObjective, SweptParameter
from kernbench_builtin.sweeps.axes import Axis, setting_text, value_text
from kernbench_builtin.sweeps.constraints import NamedValues, kept_points
from kernbench_builtin.sweeps.expressions import Expression
from kernbench_builtin.sweeps.fidelity import fidelity_errors
from kernbench_builtin.sweeps.folder import read_sweep
from kernbench_builtin.sweeps.objectives import Objective, parse_objective
from kernbench_builtin.sweeps.objectives.figures import ALIASES
from kernbench_builtin.sweeps.pages.commands import page_command, plan_at, run_command
from kernbench_builtin.sweeps.pareto import pareto_front
from kernbench_builtin.sweeps.plan import SweepPlan
from kernbench_builtin.sweeps.points import points_of
from kernbench_builtin.sweeps.ranges import in_numbers
from kernbench_builtin.sweeps.results import FULL, SCREEN, SweepResult, objective_table, points_in_words
from kernbench_builtin.sweeps.retimed import how_timed
from kernbench_builtin.sweeps.sensitivity import Sensitivity, sensitivities
from kernbench_core.errors import KernbenchError, UsageError
from kernbench_core.host.sources import file_and_function
from kernbench_core.plugins import load_plugins

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
    sweep: SweepResult, folder: str = "", plugins: Plugins | None = None, link: Callable[[_Record], str] = lambda _: ""
) -> SweepPage:
    """Return the page of a sweep, for `render_sweep` of the report.

    `folder` is what its user calls its folder, "" where it is not kept; `link` leads to the page of a point, or is "".
    `plugins` are by default those that are installed.
    """
    known = load_plugins() if plugins is None else plugins
    planned, skipped = _counted(sweep.plan, known)
    plan, records = sweep.plan, sweep.records
    named = folder or plan.is_script or file_and_function(plan.bench) is not None or plan.bench in known.benches
    objectives = [parse_objective(text) for text in plan.objectives or ("time",)]
    _, numbers, maximise = objective_table(plan, records)
    values = np.array(numbers, np.float64).reshape(len(records), len(objectives))
    ranked = np.array([record.get("fidelity", FULL) == FULL for record in records], np.bool_)
    again = len(records) - len({record["index"] for record in records})
    return SweepPage(
        name=f"{plan.bench}: {points_in_words(len(records))}",
        facts=list(_facts(plan)),
        parameters=[SweptParameter(axis.name, _is_wide(axis)) for axis in plan.axes],
        objectives=[SweptObjective(each.name, each.maximise, _figure(each)) for each in objectives],
        points=[_point(record, objectives) for record in records],
        front=pareto_front(np.where(ranked[:, None], values, math.nan), maximise).tolist(),
        commands=[
            (
                run_command(plan_at(plan, record), record["values"]) if named else "",  # not of a notebook's function
                page_command(folder, record["key"][:SHORT_KEY]),
            )
            for record in records
        ],
        links=[link(record) for record in records],
        moved_by=list(_moved(plan, records, values, objectives)),
        moved_of=_MEASURE + _doubts(plan, records),
        planned=None if planned is None else planned + again,
        skipped=skipped,
        notes=[
            *_notes(plan),
            *sweep.notes,
            *(f"{each}." for each in how_timed(records)),
            *(f"Screened against in full, {each}." for each in fidelity_errors(sweep)),
        ],
    )


def front_of(sweep: SweepResult) -> list[_Record]:
    """Return the points that none is better than in all objectives, in order; without objectives the fastest ones."""
    best = {row["key"] for row in sweep.best}
    return [record for record in sweep.records if record["key"] in best]


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
            "or was changed; begin it again in another folder: the cache has the unchanged points."
        ) from error


def _figure(objective: Objective) -> str:
    """Return the figure that an objective is, where it is nothing more."""
    return ALIASES.get(objective.expression.text, objective.expression.text)


def _point(record: _Record, objectives: Sequence[Objective]) -> dict[str, Any]:
    error = record["error"]
    known = record["objectives"] or {"time": record["figures"].get("time_ns")}
    named = {each.name: known.get(each.name) for each in objectives}
    return {**record, "objectives": named, "error": None if error is None else error["sentence"]}


def _moved(
    plan: SweepPlan, records: Sequence[_Record], values: np.ndarray[Any, Any], objectives: Sequence[Objective]
) -> Iterator[MovedBy]:
    """Yield what each parameter moves; where points were screened, of all of them as they were then."""
    told = [at for at, record in enumerate(records) if record["status"] == "ok" and _is_told(plan, record)]
    numbers = {each.name: values[told, at] for at, each in enumerate(objectives)}
    for found in sensitivities([records[at]["values"] for at in told], numbers):
        if math.isnan(found.share):
            yield MovedBy(found.parameter, found.objective, None, _why(found, numbers[found.objective]))
            continue
        values_of = {value_text(records[at]["values"][found.parameter]) for at in told}
        near = "around " if len(values_of) > found.groups else ""  # of a group of values the middle one
        lowest, highest = (f"{near}{value_text(at)}" for at in (found.lowest_at, found.highest_at))
        ends = ((found.lowest, lowest), (found.highest, highest))
        chance = 0.0 if plan.is_grid else (found.groups - 1) / (found.points - 1)
        yield MovedBy(found.parameter, found.objective, found.share, chance=chance, ends=ends)


def _is_told(plan: SweepPlan, record: _Record) -> bool:
    return plan.fidelity is None or record.get("fidelity") == SCREEN


def _why(found: Sensitivity, numbers: np.ndarray[Any, Any]) -> str:
    """Say why nothing is known of what a parameter moves."""
    known = numbers[~np.isnan(numbers)]
    if known.size == 0:
        return "no point has this objective"
    if found.groups < 2:
        return "it has one value"
    return "the objective is the same at all points" if np.ptp(known) == 0 else "no two points share a value of it"


def _doubts(plan: SweepPlan, records: Sequence[_Record]) -> str:
    """Say what the shares are to be taken with."""
    told = ""
    if plan.search:
        told = " The search chose where to look: shares say what moved among its points."
    elif plan.sample != "grid":
        told = " Of points that were drawn, a parameter that moves nothing has a small share, too, by chance."
    if plan.fidelity:
        told += " They are of the points as they were screened."
    failed = any(record["status"] != "ok" for record in records)
    if plan.is_grid and (plan.where or failed):
        why = [*(["failed"] if failed else []), *(["were left out"] if plan.where else [])]
        told += f" Points of the grid {' and '.join(why)}: parameters go together then, and their shares overlap."
    return told


def _counted(plan: SweepPlan, plugins: Plugins) -> tuple[int | None, int]:
    """Return how many points a plan asks for, None where nobody knows, and how many its constraints leave out."""
    if plan.search:
        return None, 0
    if plan.is_grid and not plan.where:
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
    if plan.fidelity:
        yield "fidelity", f"{plan.fidelity}: all are screened, and the best run in full"
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
