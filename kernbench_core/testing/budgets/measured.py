"""The figures of a run that can be limited, and where its time went, in lines."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kernbench_core.sweeps.objectives.figures import named_figures
from kernbench_core.testing.budgets.limits import Figures, exact

if TYPE_CHECKING:
    from kernbench_core.runs.result import RunResult

#: What is no number.
_NO_NUMBERS: Final = ("verified",)
#: What is the simulator's own, follows from rounding, or is reported by a bench: it may differ from machine to machine.
_NOT_HELD: Final = ("events", "max_abs_error")
_FAMILIES_NOT_HELD: Final = ("mean_utilisation.", "rows.")
#: How many resources are told, and how many kernel lines.
_MOST: Final = 3


def limited_figures(result: RunResult) -> dict[str, float | int | None]:
    """Return the figures of a result that are numbers, by name; None where it does not have one."""
    found: dict[str, float | int | None] = {}
    for name, value in named_figures(result).items():
        if name in _NO_NUMBERS or isinstance(value, bool):
            continue
        if isinstance(value, str):
            if value.lower() not in ("inf", "-inf", "nan", "infinity", "-infinity"):
                continue
            value = float(value)
        found[name] = None if isinstance(value, float) and math.isnan(value) else value
    return found


def held_figures(figures: Figures) -> dict[str, float | int | None]:
    """Return the figures that are equal wherever a run is made."""
    return {
        name: value
        for name, value in figures.items()
        if name not in _NOT_HELD and not name.startswith(_FAMILIES_NOT_HELD)
    }


def where_it_went(result: RunResult) -> Iterator[str]:
    """Say where the time of a run went: its phases, what was busiest, and the kernel lines whose ops took longest."""
    phases = sorted(result.phases.items(), key=lambda each: -each[1])
    yield "Where the time went:"
    for name, ns in phases:
        if ns:
            yield f"  {name.replace('_', ' ')}: {exact(ns)} ns ({ns / result.total_ns:.1%})".replace("%", " %")
    for use in result.busiest[:_MOST]:
        alike = f", {use.alike} alike" if use.alike > 1 else ""
        yield f"  {use.name}: busy {exact(use.busy_ns)} ns ({use.utilisation:.1%}{alike})".replace("%", " %")
    lines = zip(*(result.lines[name].tolist() for name in ("ns", "ops", "file", "line", "text")), strict=True)
    for ns, ops, file, line, text in sorted(lines, reverse=True)[:_MOST]:
        yield f"  {file}:{line}: {exact(ns)} ns in {ops} ops: {text}"
