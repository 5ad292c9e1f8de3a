"""Runs that stand side by side: each time of the first, how the others differ from it, and what moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from kernbench_builtin.compare import MovedRow, RunComparison, compare
from kernbench_builtin.compare import formatting as texts
from kernbench_builtin.compare.change_verdict import sentences
from kernbench_builtin.compare.figures import COLUMNS
from kernbench_builtin.pages.plots import stacked
from kernbench_builtin.pages.report.run_page import RunPage
from kernbench_core.units import format_time

#: Kernels of a table; all that took less of the time of kernels stand in one row below them.
_KERNELS: Final = 12


#: Things of one sort that a page lists, and parts of a critical path that a bar tells apart.
_LISTED: Final = 200
_PARTS: Final = 7
#: What stands in the table of times, or beside its bars.
_ELSEWHERE: Final = ("phase", "path")
#: The lines of kernels come first.
_SORTS: Final = ("line", "total", *(sort for sort in COLUMNS if sort not in ("line", *_ELSEWHERE)))
#: Lines of a source that were added, were removed, or say where the rest stands.
_SIDES: Final = {"+": "added", "-": "removed", "@": "small"}


@attrs.frozen
class ComparedTime:
    """A row: what took the time, of which sort ("total", "phase", "kernel"), and how long in each run (ns, or None)."""

    sort: str
    name: str
    ns: tuple[float | None, ...]

    @property
    def differences(self) -> list[str]:
        """How the time of each run differs from that of the first."""
        return [difference(each, self.ns[0]) for each in self.ns]


def compared(pages: Sequence[RunPage]) -> list[ComparedTime]:
    """Return the total, each phase, and the time of each kernel over all of its launches, of each run."""
    phases = [{name: float(ns) for name, ns in page.result["phases"].items()} for page in pages]
    names = dict.fromkeys(name for each in phases for name in each)
    rows = [ComparedTime("total", "total", tuple(page.total_ns for page in pages))]
    rows += [ComparedTime("phase", name.replace("_", " "), _row(phases, name)) for name in names]
    kernels = [_kernels(page.result.get("launches") or ()) for page in pages]
    longest = sorted(dict.fromkeys(name for each in kernels for name in each), key=partial(_longest, kernels))
    rows += [ComparedTime("kernel", name, _row(kernels, name)) for name in longest[:_KERNELS]]
    if others := longest[_KERNELS:]:
        sums = tuple(sum(each.get(name, 0.0) for name in others) for each in kernels)
        rows.append(ComparedTime("kernel", f"{len(others)} other kernels", sums))
    return rows


def phase_bar(page: RunPage) -> str:
    """Draw the phases of a run on the scale of all runs of the page."""
    phases = [(name.replace("_", " "), float(ns)) for name, ns in page.result["phases"].items()]
    return stacked(phases, whole=page.scale_ns)


def difference(ns: float | None, first: float | None) -> str:
    """Say how a time differs from that of the first run: "0.52 ×, 8.5 us less"; "" where one has none."""
    if ns is None or first is None:
        return ""
    if ns == first:
        return "the same"
    told = f"{format_time(abs(ns - first))} {'more' if ns > first else 'less'}"
    return told if first <= 0 else f"{_ratio(ns / first)} ×, {told}"


def _row(times: Sequence[Mapping[str, float]], name: str) -> tuple[float | None, ...]:
    return tuple(each.get(name) for each in times)


def _kernels(launches: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return how long the launches of each kernel ran, together."""
    found: dict[str, float] = {}
    for each in launches:
        found[each["kernel"]] = found.get(each["kernel"], 0.0) + each["ended_ns"] - each["started_ns"]
    return found


def _longest(kernels: Sequence[Mapping[str, float]], name: str) -> float:
    return -max(each.get(name, 0.0) for each in kernels)


def _ratio(value: float) -> str:
    return f"{value:.2f}" if 0.095 <= value < 100 else f"{value:.3g}"


@attrs.frozen
class MovedTable:
    """What moved of the things of one sort: its head, the names of the figures that did, and a row for each thing.

    A row is a name, what the thing is, and for each figure its values before and after with the change, or None.
    `more` things moved less than these.
    """

    head: str
    figures: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[tuple[str, str, str] | None, ...]], ...]
    more: int


@attrs.frozen
class MovedPart:
    """A part of a critical path: its name, its time (ns) in both runs, and how the second differs."""

    name: str
    before: float
    after: float
    difference: str


@attrs.frozen
class ComparedRun:
    """What moved from the first run of a page to another one, as a page shows it."""

    name: str
    comparison: RunComparison
    tables: tuple[MovedTable, ...]
    path: tuple[MovedPart, ...]
    bars: tuple[str, str]

    @property
    def total(self) -> str:
        """What became of the total time, and whether that is more than chance."""
        found = self.comparison
        moved = texts.total_line(found.before.total_ns, found.after.total_ns, found.same)
        return f"{moved}; {found.spread}" if found.spread else moved

    @property
    def verdict(self) -> tuple[str, ...]:
        """What was changed, what moved, and which lines; what limits each run stands above its bar."""
        found = self.comparison
        told = () if found.same else sentences(found.before, found.after, found.told, found.causes)
        return tuple(line for line in told if not line.startswith(("before: ", "after: ")))

    @property
    def causes(self) -> tuple[tuple[str, str, str], ...]:
        """What was run otherwise, what that was, and what it is."""
        return tuple(map(texts.cause_texts, self.comparison.causes))

    @property
    def sources(self) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
        """Kernels with another source: the name, and the lines of the diff but its two heads, each with its class."""
        return tuple(
            (source.name, tuple((_SIDES.get(line[:1], ""), line) for line in source.lines[2:]))
            for source in self.comparison.sources
        )

    @property
    def unknown(self) -> tuple[str, ...]:
        """What could not be compared."""
        return tuple(line for line in texts.unknown_section(self.comparison.unknown) if line)


def moved_from_first(pages: Sequence[RunPage]) -> tuple[ComparedRun, ...]:
    """Compare each page but the first with that."""
    first, *others = pages
    return tuple(_compared_run(page.name, compare(first.figures, page.figures)) for page in others)


def _compared_run(name: str, found: RunComparison) -> ComparedRun:
    tables = (_moved_table(sort, found.of_sort(sort)) for sort in _SORTS)
    path = tuple(_path(found))
    longest = max(found.before.total_ns, found.after.total_ns)
    bars = [
        stacked([(part.name, getattr(part, side)) for part in path[: _PARTS + 1]], whole=longest)
        for side in ("before", "after")
    ]
    return ComparedRun(name, found, tuple(table for table in tables if table.rows), path, (bars[0], bars[1]))


def _moved_table(sort: str, rows: Sequence[MovedRow]) -> MovedTable:
    """Return the table of a sort; of totals each has a row, whose figure has no name of its own."""
    if sort == "total":
        cells = [(texts.name_text(row), "", (_cell(row, row.name),)) for row in rows if row.name != "time_ns"]
        return MovedTable("totals", ("figure",), tuple(cells), 0)
    moved = {each.figure for row in rows for each in row.moved}
    figures = [figure for figure in COLUMNS[sort] if figure in moved]
    listed = tuple((row.name, row.about, tuple(_cell(row, figure) for figure in figures)) for row in rows[:_LISTED])
    names = tuple(map(texts.figure_name, figures))
    return MovedTable(f"{texts.HEADS[sort]}: {len(rows):,} moved", names, listed, max(0, len(rows) - _LISTED))


def _cell(row: MovedRow, figure: str) -> tuple[str, str, str] | None:
    for each in row.moved:
        if each.figure == figure:
            percent = texts.percent_text(each.before, each.after)
            change = texts.change_text(figure, each.change)
            return *texts.both_texts(figure, each.before, each.after), f"{change} ({percent})" if percent else change
    return None


def _path(found: RunComparison) -> Iterator[MovedPart]:
    """Yield the parts of both critical paths, the longest first; of many the last is all others."""
    if "path" in found.unknown:
        return
    before, after = ({name: row[0] for name, row in each.tables["path"].rows.items()}
                     for each in (found.before, found.after))  # fmt: skip
    names = sorted({*before, *after}, key=lambda name: (-max(before.get(name, 0.0), after.get(name, 0.0)), name))
    parts = [(name, before.get(name, 0.0), after.get(name, 0.0)) for name in names]
    if len(parts) > _PARTS + 1:
        rest = parts[_PARTS:]
        parts[_PARTS:] = [(f"{len(rest)} others", sum(old for _, old, _ in rest), sum(new for _, _, new in rest))]
    for name, old, new in parts:
        yield MovedPart(name, old, new, difference(new, old))
