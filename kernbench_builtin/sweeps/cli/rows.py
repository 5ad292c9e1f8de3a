"""The rows of a sweep in a terminal: columns that are known before the first point has run."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import rich_click as click
from attrs import define, field

from kernbench_builtin.sweeps.axes import Axis, short_names, value_text
from kernbench_builtin.sweeps.objectives import MEDIAN, SPREAD, parse_objective
from kernbench_builtin.sweeps.plan import SweepPlan
from kernbench_builtin.sweeps.points import SweepPoint
from kernbench_builtin.sweeps.results import RETIMED, SCREEN, figure_text
from kernbench_core.cli.columns import wrapped
from kernbench_core.process.terminal import shown_in_line

_GAP = 2
_INDENT = "    "
_STATUS, _NUMBER = 8, 10
#: What ranks points that were shaken, and the heads of its columns.
_SHAKEN = {MEDIAN: "median", SPREAD: "spread"}
#: Where a range has values that are written with all their digits.
_INSIDE = (0.0123, 0.3457, 0.7891, 0.9877)


@define
class Rows:
    """Lays out the head and one row after another; columns that find no room go on in a line below.

    `wraps` says whether errors are cut into lines of the `width`.
    """

    plan: SweepPlan
    points: Sequence[SweepPoint]
    width: int
    most: int
    wraps: bool = False
    timed: list[str] = field(init=False)
    shaken: list[str] = field(init=False)
    fidelity: list[str] = field(init=False)
    how: list[str] = field(init=False)
    names: list[str] = field(init=False)
    widths: list[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        axes = [axis.name for axis in self.plan.axes]
        objectives = [parse_objective(text).name for text in self.plan.objectives]
        self.timed = [] if {"time", "time_ns"} & set(objectives) else ["time"]
        self.shaken = [name for name in _SHAKEN if self.plan.options.get("shake") and name not in objectives]
        self.fidelity = [] if self.plan.fidelity is None else ["fidelity"]
        self.how = ["timed"] if self.plan.retime else []
        head = ["#", *self.fidelity, *short_names(axes), "status", *self.how, *self.timed, *objectives]
        head += [_SHAKEN[name] for name in self.shaken]
        values = [max(map(len, self._cells(axis)), default=0) for axis in self.plan.axes]
        numbers = [_NUMBER for _ in (*self.timed, *objectives, *self.shaken)]
        screened, retimed = ([len(SCREEN)] * len(self.fidelity), [len(RETIMED)] * len(self.how))
        least = [len(str(self.most)), *screened, *values, _STATUS, *retimed, *numbers]
        self.names, self.widths = head, [max(pair) for pair in zip(map(len, head), least, strict=True)]

    def _cells(self, axis: Axis) -> list[str]:
        """Return cells that are as wide as any of an axis: those of its points, and some of a range."""
        cells = [_cell(point.values[axis.name]) for point in self.points]
        return cells + ([] if axis.range is None else [_cell(axis.at(fraction)) for fraction in _INSIDE])

    def head(self) -> str:
        """Return the head."""
        return self._lines(self.names)

    def row(self, record: Mapping[str, Any]) -> str:
        """Return the row of a record, with its error below it."""
        numbers = {**{name: record["figures"].get("time_ns") for name in self.timed}, **record["objectives"]}
        spread = [figure_text(name, record["figures"].get(name)) for name in self.shaken]
        cells = [str(record["index"]), *(record[name] for name in self.fidelity)]
        cells += [_cell(record["values"][axis.name]) for axis in self.plan.axes]
        cells += [record["status"], *(record.get(name, "").partition(":")[0] for name in self.how)]
        cells += [*(figure_text(name, found) for name, found in numbers.items()), *spread]
        text = self._lines(cells)
        if record["error"] is not None:
            sentence = shown_in_line(record["error"]["sentence"].partition("\n")[0])
            lines = wrapped(sentence, self.width, _INDENT, _INDENT) if self.wraps else [f"{_INDENT}{sentence}"]
            text = "\n".join([text, *lines])
        return text

    def _lines(self, cells: Sequence[str]) -> str:
        lines, line = [], ""
        for cell, wide in zip(cells, self.widths, strict=True):
            if line and len(line) + _GAP + wide > self.width:
                lines.append(line.rstrip())
                line = "   "
            line += f"{'' if not line else ' ' * _GAP}{shown_in_line(cell):<{wide}}"
        return "\n".join([*lines, line.rstrip()])


@define
class RowPrinter:
    """Prints rows as they come: in a terminal at once, elsewhere in the order of the points, so that it is one text."""

    rows: Rows
    waiting: dict[str, Mapping[str, Any]] = field(factory=dict)
    order: deque[str] = field(factory=deque, init=False)
    at_once: bool = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.at_once = sys.stdout.isatty()

    def coming(self, points: Iterable[SweepPoint]) -> None:
        """Take note of the order of points of which rows are still to come."""
        self.order.extend(point.key for point in points)

    def head(self) -> None:
        """Print the head."""
        click.secho(self.rows.head(), bold=True)

    def row(self, record: Mapping[str, Any]) -> None:
        """Print the row of a record, or keep it until those before it have come."""
        if self.at_once or record["key"] not in self.order:
            click.echo(self.rows.row(record))
            return
        self.waiting[record["key"]] = record
        while self.order and self.order[0] in self.waiting:
            click.echo(self.rows.row(self.waiting.pop(self.order.popleft())))

    def rest(self) -> None:
        """Print the rows that wait for others which do not come any more."""
        for key in self.order:
            if key in self.waiting:
                click.echo(self.rows.row(self.waiting.pop(key)))


def _cell(value: object) -> str:
    return shown_in_line(value_text(value))
