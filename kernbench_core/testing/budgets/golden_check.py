"""A run beside its golden: whether any figure is another one, which, and why; and the golden written anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from kernbench_core.comparison import MovedRow, RunComparison, RunFigures, compare
from kernbench_core.comparison.run_figures import figures_of_json
from kernbench_core.errors import UsageError
from kernbench_core.runs.result import RunResult
from kernbench_core.testing.budgets import records
from kernbench_core.testing.budgets.causes import changed_in_short, what_changed
from kernbench_core.testing.budgets.golden_file import Golden, GoldenFault, read_golden, write_golden
from kernbench_core.testing.budgets.limits import change, exact, unit_of
from kernbench_core.testing.budgets.measured import held_figures, limited_figures
from kernbench_core.testing.budgets.records import GoldenRecord

#: Sorts of rows that follow from the others, or move when nothing but a comment does.
_FOLLOW: Final = ("line", "path", "place")
#: Figures of the whole run of which no row tells.
_ALONE: Final = ("hops", "statistics.", "reported_rows")
#: How many figures are told, and how many rows of each sort.
_MOST, _TOP = 6, 5


def checked_golden(result: RunResult, file: Path, shown: str, test: str, command: str) -> tuple[GoldenRecord, str]:
    """Return what became of a golden, and what a failure says of it after naming the run: "" where nothing differs."""
    try:
        golden = _read(file, shown, test)
    except GoldenFault as error:
        hint = f"\nRestore it, or write it anew: {command}" if error.replaceable else ""
        return GoldenRecord(shown, records.DAMAGED), f"has no golden to be held to: {error}{hint}"
    if golden is None:
        return GoldenRecord(shown, records.ABSENT), f"has no golden, as {shown!r} is not there. Write it: {command}"
    differs = _differences(golden, result)
    if not differs.found:
        return GoldenRecord(shown, records.SAME, golden.measured), ""
    said = [f"differs from its golden, {shown}.", *what_changed(differs.compared), *differs.lines()]
    return GoldenRecord(shown, records.DIFFERS, golden.measured), "\n".join([*said, f"If it is to be so: {command}"])


def updated_golden(result: RunResult, file: Path, shown: str, test: str, command: str) -> tuple[GoldenRecord, str]:
    """Write a golden where it is not there, holds other figures, or was written of other code; never wrong data.

    Return what `checked_golden` does.
    """
    if not result.right:
        said = f"gave wrong data, of which no golden is written; {shown!r} is as it was."
        return GoldenRecord(shown, records.ABSENT), said
    golden, said = None, ""
    try:
        golden = _read(file, shown, test)
    except GoldenFault as error:
        if not error.replaceable:
            return GoldenRecord(shown, records.DAMAGED), f"has no place for its golden: {error}"
        said = f"it was damaged: {error}"
    state = records.REWRITTEN if said or golden is not None else records.NEW
    if golden is not None:
        differs = _differences(golden, result)
        if not differs.found and all(each.sort == "versions" for each in differs.compared.causes):
            return GoldenRecord(shown, records.SAME, golden.measured), ""
        said = differs.in_short()
    try:
        write_golden(file, _taken(result, test))
    except UsageError as error:
        return GoldenRecord(shown, records.DAMAGED), f"has no place for its golden: {error}"
    return GoldenRecord(shown, state, None if golden is None else golden.measured, said), ""


@attrs.frozen
class GoldenDifferences:
    """What a run gave otherwise than its golden: figures of the whole run, and all that was compared."""

    moved: list[str]
    compared: RunComparison

    @property
    def found(self) -> bool:
        """Whether any figure is another one that is equal wherever a run is made."""
        return bool(self.moved or self.rows)

    @property
    def rows(self) -> list[MovedRow]:
        """What moved and is no figure of its own, or one that a later kernbench has of the whole run."""
        return [
            row
            for row in self.compared.rows
            if row.sort not in _FOLLOW and not (row.sort == "total" and row.before is None)
        ]

    def in_short(self) -> str:
        """Say in a line what moved, and what of what was run is not the same."""
        sorts = sorted({row.sort for row in self.rows})
        figures = self.moved[0] if self.moved else f"figures of its {' and '.join(sorts)}" if sorts else ""
        changed = changed_in_short(self.compared)
        return "; ".join([figures or "the same figures", *([f"changed: {changed}"] if changed else [])])

    def lines(self) -> list[str]:
        """Say what moved, by kind of component, link, op and kernel line, what moved most at the head."""
        rows = attrs.evolve(self.compared, causes=(), sources=(), notes=(), unknown={})
        lines = ["From the golden (A) to this run (B):", *rows.lines(_TOP)] if rows.rows else []
        told = [each for each in self.moved if not rows.rows or each.startswith(_ALONE)]
        return [*lines, *(["", "other figures", *_first(told)] if told else [])]


def _read(file: Path, shown: str, test: str) -> Golden | None:
    """Return the golden of a test, None where there is no file; GoldenFault for one that is damaged."""
    golden = read_golden(file, shown, test)
    if golden is not None:
        try:
            RunFigures.from_json(golden.figures, f"golden {shown!r}")
        except UsageError as error:
            raise GoldenFault(str(error), True) from None
    return golden


def _taken(result: RunResult, test: str) -> Golden:
    """Return the golden of a run."""
    return Golden(test, held_figures(limited_figures(result)), _figures(result).to_json())


def _figures(result: RunResult) -> RunFigures:
    return figures_of_json(result.to_json(), result.links)


def _differences(golden: Golden, result: RunResult) -> GoldenDifferences:
    moved = list(_moved(golden.measured, held_figures(limited_figures(result))))
    return GoldenDifferences(moved, compare(RunFigures.from_json(golden.figures), _figures(result)))


def _moved(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Say which figures of the whole run are others: "time_ns is 71,353.736 ns, was 70,120 ns: 1,233.736 ns more"."""
    for name, then in before.items():  # a later kernbench may have more
        since, unit = now.get(name), unit_of(name)
        if then == since and name in now:
            continue
        if isinstance(then, int | float) and isinstance(since, int | float):
            yield f"{name} is {exact(since)}{unit}, was {exact(then)}{unit}: {change(then, since, unit)}"
        else:
            yield "{} is {}, was {}".format(name, *("none" if each is None else exact(each) for each in (since, then)))


def _first(lines: list[str]) -> list[str]:
    more = [f"and {len(lines) - _MOST} more figures"] if len(lines) > _MOST else []
    return [f"  {line}" for line in (*lines[:_MOST], *more)]
