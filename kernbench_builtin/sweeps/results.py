"""What a sweep answers: its points in order, as records and as rows of a table, and the best of them."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import field, frozen

from kernbench_builtin.sweeps.axes import short_names, value_text
from kernbench_builtin.sweeps.objectives import MEDIAN, SPREAD, parse_objective
from kernbench_builtin.sweeps.pareto import best_first, pareto_front
from kernbench_builtin.sweeps.plan import SweepPlan
from kernbench_core.errors import SanityError
from kernbench_core.spread import TimeSpread
from kernbench_core.units import format_count, format_time

SCREEN, FULL = "screen", "full"
"""What a record may be of: a run that leaves something out, and one as it was asked for."""
#: Objectives that are the time of the whole run.
_TIMES: Final = frozenset(("time", "time_ns", MEDIAN))
#: How many rows a notebook shows.
_SHOWN: Final = 50


RETIMED: Final = "re-timed"
DIFFERS: Final = "differs"
"""How a point was timed, as its record says: from a recording, or so and in other times than its run."""


def _trusted(records: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Make errors of what was timed again from a recording of which a point that was checked differs."""
    found = tuple(records)
    wrong = {record["recording"]: record["index"] for record in found if record.get("timed") == DIFFERS}

    def distrusted(record: Mapping[str, Any]) -> Mapping[str, Any]:
        if record.get("timed") != RETIMED or record["recording"] not in wrong:
            return record
        sentence = (
            f"point {wrong[record['recording']]}, timed again from the same recording, has other times than its run; "
            "run the sweep without --retime."
        )
        error = {"kind": "SanityError", "exit_code": SanityError.exit_code, "sentence": sentence}
        none = dict.fromkeys(record["objectives"])
        return {**record, "status": "error", "error": error, "figures": {}, "objectives": none}

    return tuple(map(distrusted, found)) if wrong else found


@frozen(repr=False)
class SweepResult:
    """The finished points of a sweep, in their order, wherever and whenever they ran.

    `records` have all that is known of each, `rows` what a table shows: the values of the axes, `status`, objectives,
    figures, the error in a sentence. `best` are the rows of the points that no other one is better than. `most` is how
    many runs there are when the sweep is over, at most, where a folder says so.

    >>> done = kb.sweep("gemm", "tiny", {"M": [64, 128], "N": 64, "K": 64}, objectives=["time"])
    >>> [row["M"] for row in done.rows], done.best[0]["M"]
    ([64, 128], 64)
    """

    plan: SweepPlan
    records: tuple[Mapping[str, Any], ...] = field(converter=_trusted)
    folder: Path | None = None
    notes: tuple[str, ...] = field(default=(), eq=False)
    most: int | None = field(default=None, eq=False)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each point; nothing in it depends on when, where or in which order points were carried out."""
        return [row_of(record) for record in self.records]

    @property
    def left(self) -> int:
        """How many runs are left of a sweep that was ended before its end; of a search nobody knows, and it is 0."""
        searched = self.plan.search is not None
        return 0 if self.most is None or searched else max(0, self.most - len(self.records))

    @property
    def counts(self) -> dict[str, int]:
        """How many points there are of each status, "ok" first."""
        found = Counter(record["status"] for record in self.records)
        return dict(sorted(found.items(), key=lambda item: (item[0] != "ok", item[0])))

    @property
    def best(self) -> list[dict[str, Any]]:
        """The rows of the Pareto front of the objectives, best first; of the shortest time without objectives.

        Points that were screened only are not among them.
        """
        records = [record for record in self.records if record.get("fidelity", FULL) == FULL]
        _, numbers, maximise = objective_table(self.plan, records)
        if not any(map(_all_known, numbers)):
            return []
        front = pareto_front(numbers, maximise)
        return [row_of(records[at]) for at in best_first(numbers, maximise) if front[at]]

    @property
    def gain(self) -> float | None:
        """How many times as fast the best point is as the slowest; None where fewer than two are ordered by time.

        Where points are screened, most have no time that is like those of the best.
        """
        names, rows, maximise = objective_table(self.plan, self.records)
        times = [row[0] for row in rows if _all_known(row)]
        by_time = len(names) == 1 and names[0] in _TIMES and not maximise[0] and self.plan.fidelity is None
        if not by_time or len(times) < 2 or min(times) <= 0:
            return None
        return max(times) / min(times)

    @property
    def alike(self) -> tuple[int, ...] | None:
        """The numbers of the points that are as fast as the best, within the spread; None without a shake.

        It is asked of the time alone: other objectives have no spread.
        """
        best = self.best
        if not best or not {parse_objective(text).name for text in self.plan.objectives} <= _TIMES:
            return None
        known = {record["index"]: _time_of(record) for record in self.records if record.get("fidelity", FULL) == FULL}
        fastest = known[best[0]["index"]]
        if fastest is None:
            return None
        others = ((at, time) for at, time in known.items() if at != best[0]["index"] and time is not None)
        return tuple(at for at, time in others if not time.differs_from(fastest))

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {status}" for status, count in self.counts.items())
        return f"<SweepResult {self.plan.bench}: {points_in_words(len(self.records))}, {counts or 'none'}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a table of axes, status and objectives."""
        axes = [axis.name for axis in self.plan.axes]
        objectives = [parse_objective(text).name for text in self.plan.objectives] or ["time_ns"]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in ["#", *short_names(axes), "status", *objectives])
        body = "".join(f"<tr>{_cells(record)}</tr>" for record in self.records[:_SHOWN])
        more = len(self.records) - _SHOWN
        rest = f"<p>and {more} more</p>" if more > 0 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _time_of(record: Mapping[str, Any]) -> TimeSpread | None:
    """Return what the time of a point came to, with all ends at the same distance; None where it was not shaken."""
    found = record["figures"]
    if record["status"] != "ok" or MEDIAN not in found:
        return None
    median, half = found[MEDIAN], found[SPREAD] / 2
    return TimeSpread(median, median - half, median + half, runs=0)  # as many as the plan has, which nobody asks here


def objective_table(
    plan: SweepPlan, records: Sequence[Mapping[str, Any]]
) -> tuple[list[str], list[list[float]], list[bool]]:
    """Return the names of a plan's objectives, a row of them for each record, and which are to grow.

    NaN is what a record has no value of, or is not right. Without objectives that is the time; of a point that was
    shaken, the median stands for the time.
    """
    asked = [parse_objective(text) for text in plan.objectives or ("time",)]
    rows = []
    for record in records:
        known = record["objectives"] if plan.objectives else {"time": record["figures"].get("time_ns")}
        if MEDIAN in record["figures"]:
            known = {**known, **dict.fromkeys(_TIMES & known.keys(), record["figures"][MEDIAN])}
        right = record["status"] == "ok"
        rows.append([_number(known.get(each.name)) if right else math.nan for each in asked])
    return [each.name for each in asked], rows, [each.maximise for each in asked]


def row_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row that a table has of a record.

    What has the name of a column that stands before it, or of one of the last, is called `params.NAME`,
    `objectives.NAME` or `figures.NAME`.
    """
    error = record["error"]
    row = {name: record[name] for name in ("index", "fidelity") if name in record}
    row |= {"timed": record["timed"]} if "timed" in record else {}
    end = {
        "error": None if error is None else error["sentence"].partition("\n")[0],
        "op_log_sha256": record["op_log_sha256"],
        "key": record["key"],
    }
    _add(row, record["values"], "params", {"status", *end})
    row["status"] = record["status"]
    _add(row, record["objectives"], "objectives", end.keys())
    figures = {name: value for name, value in record["figures"].items() if name not in record["objectives"]}
    _add(row, figures, "figures", end.keys())
    return row | end


def _add(row: dict[str, Any], more: Mapping[str, Any], kind: str, taken: Collection[str]) -> None:
    """Add columns to a row, under longer names where their own are taken."""
    before = {*row, *taken}
    row |= {f"{kind}.{name}" if name in before else name: value for name, value in more.items()}


def points_in_words(count: int) -> str:
    """Say how many points there are."""
    return "1 point" if count == 1 else f"{count:,} points"


def _cells(record: Mapping[str, Any]) -> str:
    """Return the cells of a record in a notebook: number, values, status, objectives, or the time without these."""
    objectives = record["objectives"] or {"time_ns": record["figures"].get("time_ns")}
    cells = [str(record["index"]), *map(value_text, record["values"].values()), record["status"]]
    cells += [figure_text(name, value) for name, value in objectives.items()]
    return "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)


def figure_text(name: str, value: float | None) -> str:
    """Write a figure; of a time that is one, with its unit."""
    if value is None:
        return "-"
    if name == "time" or name.endswith("_ns"):
        return format_time(value)
    return f"{value:.4g}" if abs(value) < 1e4 else format_count(value)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _all_known(row: list[float]) -> bool:
    return not any(map(math.isnan, row))
