"""The columns of the op log as they are written: what a record is worth, and where each part of it goes.

It is on the path of every command of a kernel, and holds no reading: see `columns`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from attrs import frozen

from kernbench_core.oplog.packing import NumberArray, NumberColumn, PackedColumn
from kernbench_core.oplog.parameters import PatternPlan, encode_params, plan_of_pattern
from kernbench_core.oplog.spill import SpilledColumn, SpilledValues
from kernbench_core.values.region import Region
from kernbench_core.values.value import Value

if TYPE_CHECKING:
    from kernbench_core.oplog.description import OpDescription, OpPattern

SPILL_ROWS: Final = 1 << 20
"""So many rows (about 70 bytes each) are kept in memory before they go to temporary files."""

SETTLE_ROWS: Final = 1 << 14
"""So many rows are kept as they come before they are packed."""

COLUMNS: Final = (
    "t_start", "t_end", "component", "template", "sequence", "op_pe", "op_issue", "stage_pe", "stage_issue",
    "ints", "floats", "side_rows", "side_numbers",
)  # fmt: skip
"""The columns of numbers: those of a number for each record, and four others."""

AccessLook = tuple[Any, ...]
"""What the accesses of a record are, but for where they begin: whether it writes, how many, then five items of each."""

_NO_OP: Final = (-1, -1)

@frozen(eq=False)
class Template:
    """The shared part of a class of records (`sig`), and how many numbers and values each record adds to it."""

    sig: tuple[Any, ...]
    ints: int
    floats: int
    values: int
    side: int


class ColumnWriter:
    """Append-only columns of op records, one row per record in order of appending."""

    def __init__(self, spill_rows: int = SPILL_ROWS, spill_values: bool = False) -> None:
        self.t_start: NumberColumn = PackedColumn(array("d"))
        self.t_end: NumberColumn = PackedColumn(array("d"))
        self.component: NumberColumn = PackedColumn(array("i"))
        self.template: NumberColumn = PackedColumn(array("i"))
        self.sequence: NumberColumn = PackedColumn(array("i"))
        self.op_pe: NumberColumn = PackedColumn(array("i"))
        self.op_issue: NumberColumn = PackedColumn(array("i"))
        self.stage_pe: NumberColumn = PackedColumn(array("i"))
        self.stage_issue: NumberColumn = PackedColumn(array("i"))
        self.ints: NumberColumn = PackedColumn(array("q"))
        self.floats: NumberColumn = PackedColumn(array("d"))
        self.values: list[Value] | SpilledValues = []
        #: The side table: which records have objects that fit no column, the number of these, and by it the objects.
        self.side_rows: NumberColumn = PackedColumn(array("q"))
        self.side_numbers: NumberColumn = PackedColumn(array("q"))
        self.sides: list[tuple[object, ...]] = []
        self._side_ids: dict[tuple[int, ...], int] = {}
        #: How many records there are.
        self.rows = 0
        self._spill_rows = self._spill_at = spill_rows
        self._settle_at = min(SETTLE_ROWS, spill_rows)
        self._spill_values = spill_values
        self.components: dict[str, int] = {}
        self.templates: list[Template] = []
        self._template_ids: dict[tuple[object, ...], int] = {}
        self._patterns: dict[OpPattern, PatternPlan | None] = {}
        self._regions: dict[tuple[Region, ...], tuple[Region, ...]] = {}
        self._next_sequence: dict[str, int] = {}
        self._find_ways()

    def __len__(self) -> int:
        return self.rows

    def append(
        self, t_start: float, t_end: float, component: str, described: OpDescription, sequence: int | None = None
    ) -> None:
        """Add one record; see `OpLog.append`."""
        start, end, to_component, to_template, to_sequence, to_pe, to_issue, to_stage_pe, to_stage_issue = self._ways
        to_template(self._encode(described))
        to_sequence(self._next(component) if sequence is None else sequence)
        number = self.components.get(component)
        if number is None:
            number = self.components[component] = len(self.components)
        to_component(number)
        values = self.values
        for access in described.reads:
            if access.value is not None:
                values.append(access.value)
        writes = described.writes
        if writes is not None and writes.value is not None:
            values.append(writes.value)
        pe, issue = described.op_id or _NO_OP
        to_pe(pe)
        to_issue(issue)
        pe, issue = described.stage_of or _NO_OP
        to_stage_pe(pe)
        to_stage_issue(issue)
        end(t_end)
        start(t_start)
        self.rows += 1
        if self.rows >= self._settle_at:
            self.settle()

    def _encode(self, described: OpDescription) -> int:
        """Append the numbers of a record to the columns; return the number of its template."""
        ints: list[int] = []
        side: list[object] = []
        look = self._encode_accesses(described, ints, side)
        pattern = described.pattern
        plan = None if pattern is None else self._plan_of(pattern)
        if plan is None or (plan.named and described.op_id is None):
            return self._encode_singly(described, look, ints, side)
        try:
            packed = array("q", ints + plan.filled(described.numbers))
        except OverflowError:  # of an integer beyond 64 bits
            return self._encode_singly(described, look, ints, side)
        self._add_ints(packed)
        if side:
            self._put_aside(tuple(side))
        template = plan.templates.get(look)
        if template is None:
            sig = (described.op_kind, described.op_name, described.function, *look, *plan.packed)
            template = plan.templates[look] = self._template_of(described, sig, len(packed), 0, len(side))
        return template

    def _encode_singly(
        self, described: OpDescription, look: AccessLook, ints: list[int], side: list[object]
    ) -> int:
        """Append the numbers of a record whose parameters are like no others."""
        floats: list[float] = []
        params = encode_params(described, ints, floats, side)
        self.ints.extend(ints)
        if floats:
            self.floats.extend(floats)
        if side:
            self._put_aside(tuple(side))
        sig = (described.op_kind, described.op_name, described.function, *look, *params)
        return self._template_of(described, sig, len(ints), len(floats), len(side))

    def _put_aside(self, things: tuple[object, ...]) -> None:
        """Note what the record that is written has beside the columns; the same objects are kept once."""
        number = self._side_ids.setdefault(tuple(map(id, things)), len(self.sides))
        if number == len(self.sides):
            self.sides.append(things)
        self.side_rows.append(self.rows)
        self.side_numbers.append(number)

    def _template_of(
        self, described: OpDescription, sig: tuple[Any, ...], ints: int, floats: int, side: int
    ) -> int:
        template = self._template_ids.get(sig)
        if template is None:
            values = sum(a.value is not None for a in (*described.reads, described.writes) if a is not None)
            template = self.add_template(Template(sig, ints, floats, values, side))
        return template

    def _plan_of(self, pattern: OpPattern) -> PatternPlan | None:
        """Return how descriptions of a pattern are logged, worked out once."""
        try:
            return self._patterns[pattern]
        except KeyError:
            found = self._patterns[pattern] = plan_of_pattern(pattern)
            return found

    def add_template(self, template: Template) -> int:
        """Add a template that is not there yet; return its number."""
        number = self._template_ids[template.sig] = len(self.templates)
        self.templates.append(template)
        return number

    def _find_ways(self) -> None:
        """Look up what appends to the columns, as each record does."""
        self._ways: tuple[Callable[[Any], None], ...] = tuple([getattr(self, name).append for name in COLUMNS[:-4]])
        self._add_ints = self.ints.extend

    def settle(self) -> None:
        """Pack what came last, or move it to temporary files where there is much."""
        if self.rows >= self._spill_at:
            self.spill()
        else:
            for name in COLUMNS:
                getattr(self, name).settle()
        self._settle_at = min(self.rows + SETTLE_ROWS, self._spill_at)

    def spill(self) -> None:
        """Move the rows that are in memory to temporary files; values too where the log was made to spill them."""
        for name in COLUMNS:
            column = getattr(self, name)
            if not isinstance(column, SpilledColumn):
                column = SpilledColumn(array(column.tail.typecode, np.asarray(column).tobytes()))
                setattr(self, name, column)
            column.spill()
        self._find_ways()
        if self._spill_values:
            if not isinstance(self.values, SpilledValues):
                self.values = SpilledValues(self.values)
            self.values.spill()
        self._spill_at = self.rows + self._spill_rows

    def load(self, numbers: Mapping[str, NumberArray]) -> None:
        """Take the columns of numbers of a log that was saved, by their names."""
        for name in COLUMNS:
            column = getattr(self, name)
            column.extend(array(column.tail.typecode, numbers[name].tobytes()))
            column.settle()
        self.rows = len(self.t_start)

    def _encode_accesses(self, described: OpDescription, ints: list[int], side: list[Any]) -> AccessLook:
        """Append where the accesses of a record begin; return the rest of what they are."""
        writes = described.writes
        accesses = described.reads if writes is None else (*described.reads, writes)
        look: list[Any] = [writes is not None, len(accesses)]
        for access in accesses:
            regions = access.regions
            if len(regions) == 1:
                region = regions[0]
                ints.append(region.base)
                look += (access.space, access.value is None, region.row_bytes, region.rows, region.pitch)
            elif not regions:
                look += (access.space, access.value is None, 0, 0, 0)
            else:
                side.append(self._regions.setdefault(regions, regions))
                look += (access.space, access.value is None, None, None, None)
        return tuple(look)

    def _next(self, component: str) -> int:
        sequence = self._next_sequence.get(component, 0)
        self._next_sequence[component] = sequence + 1
        return sequence
