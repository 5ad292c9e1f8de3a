"""The columns behind the op log: a record is a template (interned) plus the numbers that the template leaves open.

The template holds what many records share: names, shapes, dtypes, spaces, the geometry of single regions. Addresses and
other top-level integers go to one integer column, floats to a float column, whatever is neither to a side table.
How a record is encoded depends on that record alone, so equal records give equal columns in any order of appending.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from attrs import frozen

from kernbench_core.oplog.encoding import canonical
from kernbench_core.oplog.forms import RecordForm
from kernbench_core.oplog.parameters import (
    Plans,
    RawAccess,
    encode_params,
)
from kernbench_core.oplog.spill import SpilledColumn, SpilledSide, SpilledValues, chunks, sorted_rows, take
from kernbench_core.values.region import Region
from kernbench_core.values.value import ArrayValue, OpId, ResultValue, Value

if TYPE_CHECKING:
    from kernbench_core.oplog.description import OpDescription

    _Column = array[Any] | SpilledColumn


_Made = TypeVar("_Made", ArrayValue, ResultValue)
SPILL_ROWS: Final = 1 << 20
"""So many rows (about 110 bytes each) are kept in memory before they go to temporary files."""

SPILLED: Final = (
    "t_start", "t_end", "component", "template", "sequence", "op_pe", "op_issue", "stage_pe", "stage_issue", "ints",
    "floats",
)  # fmt: skip
"""The columns of numbers."""

ROWS_AT_ONCE: Final = 1 << 18
"""So many rows are looked at in one call of numpy."""

Ints = np.ndarray[Any, np.dtype[np.int64]]
Head = tuple[str, str, str | None, OpId | None, OpId | None, bool]


@frozen(eq=False)
class Template:
    """The shared part of a class of records (`sig`), and how many numbers and values each record adds to it."""

    sig: tuple[Any, ...]
    ints: int
    floats: int
    values: int
    side: int


class Columns:
    """Append-only columns of op records, one row per record in order of appending."""

    def __init__(self, spill_rows: int = SPILL_ROWS, spill_values: bool = False) -> None:
        self.t_start: _Column = array("d")
        self.t_end: _Column = array("d")
        self.component: _Column = array("i")
        self.template: _Column = array("i")
        self.sequence: _Column = array("i")
        self.op_pe: _Column = array("i")
        self.op_issue: _Column = array("i")
        self.stage_pe: _Column = array("i")
        self.stage_issue: _Column = array("i")
        self.ints: _Column = array("q")
        self.floats: _Column = array("d")
        self.values: list[Value] | SpilledValues = []
        self.side: dict[int, tuple[object, ...]] | SpilledSide = {}
        self._spill_rows = self._spill_at = spill_rows
        self._spill_values = spill_values
        self.components: dict[str, int] = {}
        self.templates: list[Template] = []
        self._template_ids: dict[tuple[object, ...], int] = {}
        self._forms: list[RecordForm] = []
        self._plans: Plans = {}
        self._regions: dict[tuple[Region, ...], tuple[Region, ...]] = {}
        self._next_sequence: dict[str, int] = {}
        self._order: Ints | SpilledColumn | None = None
        self._starts: tuple[_Column, _Column, _Column] = (array("q", [0]), array("q", [0]), array("q", [0]))
        self._names: list[str] = []

    def __len__(self) -> int:
        return len(self.t_start)

    def append(
        self, t_start: float, t_end: float, component: str, described: OpDescription, sequence: int | None = None
    ) -> None:
        """Add one record; see `OpLog.append`."""
        ints: list[int] = []
        floats: list[float] = []
        side: list[object] = []
        sig = self._encode_accesses(described, ints, side)
        sig += encode_params(described, ints, floats, side, self._plans)
        try:
            packed = array("q", ints)
        except OverflowError:
            ints, floats, side = [], [], []
            sig = self._encode_accesses(described, ints, side, huge=True)
            sig += encode_params(described, ints, floats, side, self._plans, huge=True)
            packed = array("q", ints)
        key = tuple(sig)
        template = self._template_ids.get(key)
        if template is None:
            values = sum(a.value is not None for a in (*described.reads, described.writes) if a is not None)
            template = self.add_template(Template(key, len(ints), len(floats), values, len(side)))
        self.ints.extend(packed)
        if floats:
            self.floats.extend(floats)
        if side:
            self.side[len(self.t_start)] = tuple(side)
        for access in described.reads:
            if access.value is not None:
                self.values.append(access.value)
        if described.writes is not None and described.writes.value is not None:
            self.values.append(described.writes.value)
        self.template.append(template)
        self._append_fixed(component, described, sequence)
        self.t_end.append(t_end)
        self.t_start.append(t_start)
        self._order = None
        if len(self.t_start) >= self._spill_at:
            self.spill()

    def spill(self) -> None:
        """Move the rows that are in memory to temporary files; values too where the log was made to spill them."""
        for name in SPILLED:
            column = getattr(self, name)
            if not isinstance(column, SpilledColumn):
                column = SpilledColumn(column)
                setattr(self, name, column)
            column.spill()
        if not isinstance(self.side, SpilledSide):
            self.side = SpilledSide(self.side)
        self.side.spill()
        if self._spill_values:
            if not isinstance(self.values, SpilledValues):
                self.values = SpilledValues(self.values)
            self.values.spill()
        self._spill_at = len(self.t_start) + self._spill_rows

    @property
    def spilled(self) -> bool:
        """Whether a part of the log lies in files."""
        return isinstance(self.t_start, SpilledColumn)

    def add_template(self, template: Template) -> int:
        """Add a template that is not there yet; return its number."""
        number = self._template_ids[template.sig] = len(self.templates)
        self.templates.append(template)
        return number

    def form(self, number: int) -> RecordForm:
        """Return what the records of template `number` share."""
        forms = self._forms
        while len(forms) < len(self.templates):
            forms.append(RecordForm(self.templates[len(forms)].sig))
        return forms[number]

    def order(self) -> Ints | SpilledColumn:
        """Return the rows in the order (t_start, component name, sequence); see `chunks` for walking over them."""
        if self._order is None:
            names = sorted(self.components)
            rank = np.empty(len(names), np.int64)
            rank[[self.components[name] for name in names]] = np.arange(len(names))
            if isinstance(self.t_start, SpilledColumn):
                assert isinstance(self.component, SpilledColumn)
                assert isinstance(self.sequence, SpilledColumn)
                self._order = sorted_rows(self.t_start, self.component, rank, self.sequence)
                return self._order
            ranks = rank[np.array(self.component, np.int64)] if len(self) else np.empty(0, np.int64)
            self._order = np.lexsort((np.array(self.sequence), ranks, np.array(self.t_start)))
        return self._order

    def op_positions(self) -> Iterator[tuple[OpId, int]]:
        """Yield every op with the position, in order, of the record that is its making; stages have none."""
        first = 0
        for rows in chunks(self.order()):
            pes, issues = take(self.op_pe, rows), take(self.op_issue, rows)
            at = np.flatnonzero((pes >= 0) & (take(self.stage_pe, rows) < 0))
            ops = zip(pes[at].tolist(), issues[at].tolist(), strict=True)
            yield from zip(ops, (at + first).tolist(), strict=True)
            first += len(rows)

    def example_rows(self, first: int) -> list[int]:
        """Return one row of each template among the rows from `first` on; stages are left out."""
        template = np.array(self.template[first:])
        rows = np.flatnonzero(np.array(self.stage_pe[first:]) < 0)
        _, at = np.unique(template[rows], return_index=True)
        return (rows[at] + first).tolist()  # type: ignore[no-any-return]

    def integers(self, name: str) -> Ints:
        """Return a parameter of every row as far as it is a plain integer, else 0."""
        forms = map(self.form, range(len(self.templates)))
        offsets = np.array([form.int_places.get(name, -1) for form in forms], np.int64)
        found = np.zeros(len(self), np.int64)
        starts = self.row_starts()[0]
        for first in range(0, len(self), ROWS_AT_ONCE):
            offset = offsets[np.array(self.template[first : first + ROWS_AT_ONCE], np.int64)]
            rows = np.flatnonzero(offset >= 0)
            found[rows + first] = take(self.ints, take(starts, rows + first) + offset[rows])
        return found

    def instant_rows(self) -> Iterator[int]:
        """Yield the rows of ops that took no time."""
        for start in range(0, len(self), ROWS_AT_ONCE):
            stop = start + ROWS_AT_ONCE
            ended = np.array(self.t_end[start:stop]) <= np.array(self.t_start[start:stop])
            yield from (np.flatnonzero(ended) + start).tolist()

    def makers(self, first: int, kind: type[_Made]) -> Iterator[tuple[int, float, _Made, tuple[Value, ...]]]:
        """Yield row, start, result and input values of every row from `first` on that makes its own result of a kind.

        A `ResultValue` is left to phase 2, an `ArrayValue` was computed while the kernel ran.
        """
        starts = self.row_starts()[2]
        own = (np.array(self.stage_pe[first:]) < 0) & (np.array(self.op_pe[first:]) >= 0)
        for row in (np.flatnonzero(own) + first).tolist():
            if not self.templates[self.template[row]].sig[3]:
                continue
            begin, end = starts[row], starts[row + 1]
            if begin == end:
                continue
            result = self.values[end - 1]
            if type(result) is kind and result.writer == (self.op_pe[row], self.op_issue[row]):
                yield row, self.t_start[row], result, tuple(self.values[begin : end - 1])

    def copies(self) -> Iterator[tuple[int, float, tuple[Value, ...]]]:
        """Yield row, start and values of every row that moves data which it names: the first read, the last written."""
        starts = self.row_starts()[2]
        moves = [template.sig[0] == "memory" for template in self.templates]
        for row in np.flatnonzero(np.array(self.stage_pe[:]) < 0).tolist():
            begin, end = starts[row], starts[row + 1]
            if moves[self.template[row]] and begin != end:
                yield row, self.t_start[row], tuple(self.values[begin:end])

    def row(self, row: int) -> tuple[float, float, str, Head, dict[str, Any], list[RawAccess]]:
        """Rebuild one row: times, component, head, parameters, accesses (the written one last)."""
        number = self.template[row]
        template, form = self.templates[number], self.form(number)
        int_starts, float_starts, value_starts = (starts[row] for starts in self.row_starts())
        ints = self.ints[int_starts : int_starts + template.ints].tolist()
        floats = self.floats[float_starts : float_starts + template.floats].tolist()
        values = iter(self.values[value_starts : value_starts + template.values])
        side = iter(self.side.get(row, ()))
        accesses = form.accesses(ints, values, side)
        op_id = _op_id(self.op_pe[row], self.op_issue[row])
        reads = [value for _, _, value in accesses]
        if form.writes:
            reads.pop()
        params = form.params(ints, floats, side, op_id, reads)
        stage_of = _op_id(self.stage_pe[row], self.stage_issue[row])
        head = (form.op_kind, form.op_name, form.function, op_id, stage_of, form.writes)
        return self.t_start[row], self.t_end[row], self._component_names()[self.component[row]], head, params, accesses

    def sha256(self) -> str:
        """Return the hash of the records in order, values left out; equal logs hash equal however they were filled."""
        order = self.order()
        digest = hashlib.sha256(b"kernbench.oplog/1")
        self._hash_names(digest, self.component, self._component_names(), order)
        self._hash_names(digest, self.template, [canonical(t.sig) for t in self.templates], order)
        for times in (self.t_start, self.t_end):
            for rows in chunks(order):
                digest.update(take(times, rows).astype("<f8", copy=False).tobytes())
        for ids in (self.op_pe, self.op_issue, self.stage_pe, self.stage_issue):
            for rows in chunks(order):
                digest.update(take(ids, rows).astype("<i8").tobytes())
        int_starts, float_starts, _ = self.row_starts()
        for column, starts, code in ((self.ints, int_starts, "<i8"), (self.floats, float_starts, "<f8")):
            for rows in chunks(order):
                digest.update(_gathered(column, starts, rows).astype(code, copy=False).tobytes())
        if self.side:
            known: dict[int, bytes] = {}
            for row in (row for rows in chunks(order) for row in rows.tolist()):
                for thing in self.side.get(row, ()):
                    if id(thing) not in known:
                        known[id(thing)] = canonical(thing)
                    digest.update(known[id(thing)])
        return digest.hexdigest()

    def _encode_accesses(
        self, described: OpDescription, ints: list[int], side: list[Any], huge: bool = False
    ) -> list[Any]:
        writes = described.writes
        accesses = described.reads if writes is None else (*described.reads, writes)
        sig: list[Any] = [described.op_kind, described.op_name, described.function, writes is not None, len(accesses)]
        for access in accesses:
            regions = access.regions
            if len(regions) == 1 and not huge:
                region = regions[0]
                ints.append(region.base)
                sig += (access.space, access.value is None, region.row_bytes, region.rows, region.pitch)
            elif not regions:
                sig += (access.space, access.value is None, 0, 0, 0)
            else:
                side.append(self._regions.setdefault(regions, regions))
                sig += (access.space, access.value is None, None, None, None)
        return sig

    def _append_fixed(self, component: str, described: OpDescription, sequence: int | None) -> None:
        if sequence is None:
            sequence = self._next_sequence.get(component, 0)
            self._next_sequence[component] = sequence + 1
        self.sequence.append(sequence)
        self.component.append(self.components.setdefault(component, len(self.components)))
        pe, issue = described.op_id or (-1, -1)
        self.op_pe.append(pe)
        self.op_issue.append(issue)
        pe, issue = described.stage_of or (-1, -1)
        self.stage_pe.append(pe)
        self.stage_issue.append(issue)

    def _component_names(self) -> list[str]:
        if len(self._names) != len(self.components):
            self._names = list(self.components)
        return self._names

    def row_starts(self) -> tuple[_Column, _Column, _Column]:
        """Return where the integers, floats and values of each row start, and after the last row where they end.

        Only the rows that were appended since the last time are looked at.
        """
        known = len(self._starts[0]) - 1
        if known < len(self) and self.spilled and not isinstance(self._starts[0], SpilledColumn):
            first, second, third = self._starts
            assert not isinstance(first, SpilledColumn | str)
            self._starts = (SpilledColumn(first), SpilledColumn(second), SpilledColumn(third))  # type: ignore[arg-type]
        for start in range(known, len(self), ROWS_AT_ONCE):
            template = np.array(self.template[start : start + ROWS_AT_ONCE])
            counts = zip(*((t.ints, t.floats, t.values) for t in self.templates), strict=True)
            for starts, each in zip(self._starts, counts, strict=True):
                more = np.cumsum(np.array(each, np.int64)[template]) + starts[-1]
                starts.extend(array("q", more.tobytes()))
                if isinstance(starts, SpilledColumn):
                    starts.spill()
        return self._starts

    def _hash_names(
        self, digest: Any, column: _Column, names: Sequence[str | bytes], order: Ints | SpilledColumn
    ) -> None:
        """Hash a column of name numbers as the sorted names and the ranks of the rows."""
        by_name = sorted(range(len(names)), key=names.__getitem__)
        rank = np.empty(len(names), "<i8")
        rank[by_name] = np.arange(len(names))
        for at in by_name:
            digest.update(canonical(names[at]))
        for rows in chunks(order):
            digest.update(rank[take(column, rows)].tobytes())


def _op_id(pe: int, issue: int) -> OpId | None:
    return None if pe < 0 else (pe, issue)


def _gathered(column: _Column, starts: _Column, rows: Ints) -> np.ndarray[Any, Any]:
    """Return what a column holds of some rows, one after the other."""
    begin = take(starts, rows)
    counts = take(starts, rows + 1) - begin
    ends = np.cumsum(counts)
    index = np.repeat(begin - (ends - counts), counts) + np.arange(int(counts.sum()))
    return take(column, index)
