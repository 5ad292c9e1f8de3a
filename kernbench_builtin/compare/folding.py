"""Which figures that moved are worth a line, and which links are told together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from kernbench_builtin.compare.moved_rows import RATES, MovedFigure, MovedRow

#: Changes below either are told only where there are no others: a share of what it was, and ns of a time.
LEAST_SHARE: Final = 0.001
LEAST_NS: Final = 1.0


def is_small(each: MovedFigure) -> bool:
    """Whether a figure hardly moved; one that is what a thing is, or that only one run has, never is."""
    if each.figure in RATES or each.before is None or each.after is None:
        return False
    if each.figure.endswith("ns") and abs(each.change) < LEAST_NS:
        return True
    return abs(each.change) < LEAST_SHARE * abs(each.before)


def large(rows: Iterable[MovedRow]) -> tuple[MovedRow, ...]:
    """Return the rows with the figures that moved more than hardly, without those that have none."""
    found = []
    for row in rows:
        moved = tuple(each for each in row.moved if not is_small(_named(row, each)))
        if moved:
            found.append(row if len(moved) == len(row.moved) else attrs.evolve(row, moved=moved))
    return tuple(found)


def _named(row: MovedRow, each: MovedFigure) -> MovedFigure:
    """Return a figure under the name that says its unit: of totals that is the row's."""
    return attrs.evolve(each, figure=row.name) if row.sort == "total" else each


def alike(rows: Sequence[MovedRow]) -> list[list[MovedRow]]:
    """Put links of one kind together whose figures moved by the same share; all other rows stand alone."""
    found: dict[object, list[MovedRow]] = {}
    for number, row in enumerate(rows):
        key: object = (row.about, *_changes(row)) if row.sort == "link" else number
        found.setdefault(key, []).append(row)
    return [*found.values()]


def _changes(row: MovedRow) -> Iterator[tuple[object, ...]]:
    """Yield what links have in common that are told together: another rate, else by how much each figure moved."""
    rates = [(each.figure, each.before, each.after) for each in row.moved if each.figure in RATES]
    if rates and all(None not in rate for rate in rates):
        yield from rates
    else:
        shares = sorted((share_text(each), each.figure) for each in row.moved)
        yield from shares if shares[0][0] != shares[-1][0] else [shares[0][:1]]


def share_text(each: MovedFigure) -> str:
    """Say by which share a figure moved, to a tenth of a percent; from nothing, or to nothing known, in words."""
    if each.before is None or each.after is None:
        return "gone" if each.after is None else "new"
    return f"{each.after / each.before - 1:+.1%}".replace(".0%", "%").replace("%", " %") if each.before else "from 0"


def together(rows: Iterable[MovedRow]) -> tuple[MovedFigure, ...]:
    """Add up the figures of several things, but for those that say what a thing is."""
    sums: dict[str, tuple[float, float]] = {}
    for each in (one for row in rows for one in row.moved if one.figure not in RATES):
        before, after = sums.get(each.figure, (0.0, 0.0))
        sums[each.figure] = before + (each.before or 0.0), after + (each.after or 0.0)
    return tuple(MovedFigure(figure, *both) for figure, both in sums.items())
