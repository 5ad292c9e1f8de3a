"""The page of a sweep: one file with everything in it, as the page of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
from markupsafe import Markup

from kernbench_builtin.pages.report.page import SHARED, asset, whole_page
from kernbench_builtin.pages.report.payload import script_text
from kernbench_builtin.pages.report.sweep.columns import columns, figure_form, is_ranked
from kernbench_builtin.pages.report.sweep.sweep_page import MovedBy, SweepPage, SweptObjective
from kernbench_core.units import format_bandwidth, format_bytes, format_time

_SCRIPTS: Final = ("points", "canvas", "points_table", "point", "parallel", "scatter", "sweep")


def _plain(value: float) -> str:
    """Write a number with six digits at most, as the page's scripts do."""
    return f"{float(f'{value:.6g}'):,.15g}"


_FORMS: Final[Mapping[str, Callable[[float], str]]] = {
    "time": format_time, "bytes": format_bytes, "bandwidth": format_bandwidth, "number": _plain,
}  # fmt: skip
#: How a point can have ended beside "ok", and the words for many.
_ENDS: Final = {"error": "failed", "deadlock": "deadlocked", "limit": "reached a limit", "timeout": "ran out of time",
                "wrong": "computed wrong data"}  # fmt: skip


@attrs.frozen
class _Best:
    """The best of an objective: the word for it, its value, and index and key of the points that have it."""

    name: str
    word: str
    value: str
    points: tuple[tuple[int, str], ...]


@attrs.frozen
class _Cell:
    """What a parameter moves of one objective: a share, what it says, and whether chance alone gives as much."""

    share: float | None
    told: str
    by_chance: bool = False


@attrs.frozen
class _Row:
    """A parameter, its place among those of the page, and what it moves of each objective."""

    at: int
    name: str
    cells: tuple[_Cell, ...]


def render_sweep(page: SweepPage) -> str:
    """Return the page of a sweep."""
    own = [asset(f"{name}.js", __package__) for name in _SCRIPTS]
    return whole_page(
        "sweep.html",
        [*(asset(f"{name}.js") for name in SHARED), *own],
        asset("sweep.css", __package__),
        title=page.name,
        page=page,
        verdict=list(verdict_of(page)),
        ends=list(_ends(page)),
        best=[found for each in page.objectives if (found := _best(page, each)) is not None],
        moved=_moved(page) if page.moved_by else [],
        data=Markup(script_text(columns(page))),
    )


def verdict_of(page: SweepPage) -> Iterator[str]:
    """Yield what the sweep says in sentences: the best point, or the front, and what moves the first objective most."""
    if not page.objectives or not (ranked := [point for point in page.points if is_ranked(point)]):
        return
    first = page.objectives[0]
    if (best := _best(page, first)) is None:
        return
    (index, _), many = best.points[0], len(best.points)
    point = next(each for each in ranked if each["index"] == index)
    values = ", ".join(f"{_short(page, name)}={value}" for name, value in point["values"].items())
    others = f" and {many - 1} more" if many > 1 else ""
    rest = [
        f"{each.name} {_said(each, float(value))}" for each in page.objectives[1:]
        if _is_number(value := point["objectives"].get(each.name))
    ]  # fmt: skip
    costs = f", with {' and '.join(rest)}" if rest else ""
    yield f"{best.word} {first.name}: {best.value}{costs}, point {index}{others}: {values}."
    if len(page.objectives) > 1:
        front = sum(map(bool, page.front))
        of = f"{front} of {len(page.points):,} points are on the front of {_names(page)}"
        yield f"{of}: what is better in one is worse in another."
    yield from _compared(first, best, ranked)
    moved = [each for each in page.moved_by if each.objective == first.name and (each.share or 0) > each.chance]
    if moved := sorted(moved, key=lambda each: -(each.share or 0))[:2]:
        told = f"{_short(page, moved[0].parameter)} ({moved[0].share:.0%} of its variance)"
        told += "".join(f" and {_short(page, each.parameter)} ({each.share:.0%})" for each in moved[1:])
        least = min((each for each in page.moved_by if each.objective == first.name and each.share is not None),
                    key=lambda each: each.share or 0.0)  # fmt: skip
        last = f"; least: {_short(page, least.parameter)} ({least.share:.0%})" if least not in moved else ""
        yield f"What moves {first.name} most: {told}{last}."


def _compared(first: SweptObjective, best: _Best, ranked: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    values = sorted(float(value) for each in ranked if _is_number(value := each["objectives"].get(first.name)))
    middle, end = values[len(values) // 2], values[0 if first.greatest else -1]
    if values[0] < values[-1]:
        start = values[-1 if first.greatest else 0]
        middle_told, end_told = (f"{_said(first, each)}{_against(each, start)}" for each in (middle, end))
        yield f"The median is {middle_told}, the worst {end_told}."


def _against(value: float, best: float) -> str:
    """Say how much more or less than the best it is, in percent, where both are above 0."""
    return f" ({value / best - 1:+.0%})" if value > 0 and best > 0 else ""


def _names(page: SweepPage) -> str:
    return " and ".join(each.name for each in page.objectives)


def _short(page: SweepPage, name: str) -> str:
    """Leave out what parameters need not be told apart."""
    last = name.rpartition(".")[2]
    return last if sum(each.name.rpartition(".")[2] == last for each in page.parameters) == 1 else name


def _ends(page: SweepPage) -> Iterator[tuple[str, int, str]]:
    """Yield how many points ended how: a name, the count, and "warn" where that is bad."""
    ended = [point["status"] for point in page.points]
    yield "ran", ended.count("ok"), ""
    for status in sorted(set(ended) - {"ok"}):
        yield _ENDS.get(status, status), ended.count(status), "warn"
    if page.planned is not None and page.planned > len(ended):
        yield "still to run", page.planned - len(ended), ""
    if page.skipped:
        yield "left out by constraints", page.skipped, ""


def _best(page: SweepPage, objective: SweptObjective) -> _Best | None:
    """Return the best of an objective, None where no point has it."""
    sign = -1.0 if objective.greatest else 1.0
    found = [
        (sign * float(value), point)
        for point in page.points
        if is_ranked(point) and _is_number(value := point["objectives"].get(objective.name))
    ]
    if not found:
        return None
    least = min(value for value, _ in found)
    points = tuple((point["index"], point["key"][:16]) for value, point in found if value == least)
    word = "greatest" if objective.greatest else "least"
    return _Best(objective.name, word, _said(objective, sign * least), points)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _said(objective: SweptObjective, value: float) -> str:
    """Write a value of an objective by the unit that the name of its figure ends in."""
    name = objective.figure or objective.name
    return _FORMS[figure_form(name)](value)


def _moved(page: SweepPage) -> list[_Row]:
    """Return what each parameter moves, the one that moves any objective the most first."""
    by = {(each.parameter, each.objective): each for each in page.moved_by}
    rows = []
    for at, each in enumerate(page.parameters):
        cells = tuple(_cell(by.get((each.name, of.name)), of) for of in page.objectives)
        rows.append(_Row(at, each.name, cells))
    return sorted(rows, key=lambda row: -max((cell.share for cell in row.cells if cell.share is not None), default=-1))


def _cell(moved: MovedBy | None, of: SweptObjective) -> _Cell:
    if moved is None or moved.share is None:
        return _Cell(None, "" if moved is None else moved.why)
    told = ""
    if moved.ends is not None:
        told = " … ".join(f"{_said(of, value)} at {at}" for value, at in moved.ends)
    if moved.share <= moved.chance:
        told = "no more than chance" if moved.chance else "nothing"
    return _Cell(moved.share, told, moved.share <= moved.chance)
