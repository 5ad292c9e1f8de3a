"""The columns behind the op log: a record is a template (interned) plus the numbers that the template leaves open.

The template holds what many records share: names, shapes, dtypes, spaces, the geometry of single regions. Addresses and
other top-level integers go to one integer column, floats to a float column, whatever is neither to a side table.
How a record is encoded depends on that record alone, so equal records give equal columns in any order of appending.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from kernbench_core.oplog.encoding import canonical
from kernbench_core.oplog.forms import RecordForm
from kernbench_core.oplog.packing import NumberColumn, PackedColumn
from kernbench_core.oplog.parameters import RawAccess
from kernbench_core.oplog.spill import SpilledColumn, chunks, sorted_rows, take
from kernbench_core.oplog.writing import SPILL_ROWS, ColumnWriter
from kernbench_core.values.value import ArrayValue, OpId, ResultValue, Value

_Made = TypeVar("_Made", ArrayValue, ResultValue)
ROWS_AT_ONCE: Final = 1 << 18
"""So many rows are looked at in one call of numpy."""

Ints = np.ndarray[Any, np.dtype[np.int64]]
Head = tuple[str, str, str | None, OpId | None, OpId | None, bool]


class Columns(ColumnWriter):
    """Append-only columns of op records, one row per record in order of appending, and how they are read."""

    def __init__(self, spill_rows: int = SPILL_ROWS, spill_values: bool = False) -> None:
        super().__init__(spill_rows, spill_values)
        self._forms: list[RecordForm] = []
        self._order: Ints | SpilledColumn | None = None
        self._starts: tuple[NumberColumn, ...] = tuple(
            PackedColumn(array("q", [0])) for _ in range(3)
        )
        self._names: list[str] = []

    @property
    def spilled(self) -> bool:
        """Whether a part of the log lies in files."""
        return isinstance(self.t_start, SpilledColumn)

    def form(self, number: int) -> RecordForm:
        """Return what the records of template `number` share."""
        forms = self._forms
        while len(forms) < len(self.templates):
            forms.append(RecordForm(self.templates[len(forms)].sig))
        return forms[number]

    def order(self) -> Ints | SpilledColumn:
        """Return the rows in the order (t_start, component name, sequence); see `chunks` for walking over them."""
        if self._order is None or len(self._order) != len(self):
            names = sorted(self.components)
            rank = np.empty(len(names), np.int64)
            rank[[self.components[name] for name in names]] = np.arange(len(names))
            if isinstance(self.t_start, SpilledColumn):
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
        own = (np.array(self.stage_pe[first:]) < 0) & (np.array(self.op_pe[first:]) >= 0)
        writes = np.array([template.sig[3] for template in self.templates], bool)
        for row, t_start, op_id, begin, end in self._valued(np.flatnonzero(own) + first, writes):
            result = self.values[end - 1]
            if type(result) is kind and result.writer == op_id:
                yield row, t_start, result, tuple(self.values[begin : end - 1])

    def copies(self) -> Iterator[tuple[int, float, tuple[Value, ...]]]:
        """Yield row, start and values of every row that moves data which it names: the first read, the last written."""
        moves = np.array([template.sig[0] == "memory" for template in self.templates], bool)
        for row, t_start, _, begin, end in self._valued(np.flatnonzero(np.array(self.stage_pe[:]) < 0), moves):
            yield row, t_start, tuple(self.values[begin:end])

    def _valued(
        self, rows: Ints, wanted: np.ndarray[Any, np.dtype[np.bool_]]
    ) -> Iterator[tuple[int, float, OpId, int, int]]:
        """Yield row, start, op and the bounds of the values of the rows of `wanted` templates that name a value."""
        starts = self.row_starts()[2]
        for at in range(0, len(rows), ROWS_AT_ONCE):
            some = rows[at : at + ROWS_AT_ONCE]
            some = some[wanted[take(self.template, some)]]
            begin, end = take(starts, some), take(starts, some + 1)
            there = begin < end
            some = some[there]
            ops = zip(take(self.op_pe, some).tolist(), take(self.op_issue, some).tolist(), strict=True)
            times = take(self.t_start, some).tolist()
            yield from zip(some.tolist(), times, ops, begin[there].tolist(), end[there].tolist(), strict=True)

    def row(self, row: int) -> tuple[float, float, str, Head, dict[str, Any], list[RawAccess]]:
        """Rebuild one row: times, component, head, parameters, accesses (the written one last)."""
        number = self.template[row]
        template, form = self.templates[number], self.form(number)
        int_starts, float_starts, value_starts = (starts[row] for starts in self.row_starts())
        ints = self.ints[int_starts : int_starts + template.ints].tolist()
        floats = self.floats[float_starts : float_starts + template.floats].tolist()
        values = iter(self.values[value_starts : value_starts + template.values])
        side = iter(self._side_of(row) if template.side else ())
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
        known: dict[int, bytes] = {}
        for thing in (thing for rows in chunks(order) for things in self.sides_of(rows) for thing in things):
            if id(thing) not in known:
                known[id(thing)] = canonical(thing)
            digest.update(known[id(thing)])
        return digest.hexdigest()

    def sides_of(self, rows: Ints) -> list[tuple[Any, ...]]:
        """Return what those of some rows that have objects beside the columns have there."""
        held = np.asarray(self.side_rows)
        at = np.searchsorted(held, rows)
        there = at[at < len(held)]
        there = there[held[there] == rows[at < len(held)]]
        return [self.sides[number] for number in take(self.side_numbers, there).tolist()]

    def _side_of(self, row: int) -> tuple[Any, ...]:
        number: int = self.side_numbers[bisect_left(self.side_rows, row)]
        return self.sides[number]

    def _component_names(self) -> list[str]:
        if len(self._names) != len(self.components):
            self._names = list(self.components)
        return self._names

    def row_starts(self) -> tuple[NumberColumn, ...]:
        """Return where the integers, floats and values of each row start, and after the last row where they end.

        Only the rows that were appended since the last time are looked at.
        """
        known = len(self._starts[0]) - 1
        if known < len(self) and self.spilled and not isinstance(self._starts[0], SpilledColumn):
            self._starts = tuple(SpilledColumn(array("q", np.asarray(starts).tobytes())) for starts in self._starts)
        for start in range(known, len(self), ROWS_AT_ONCE):
            template = np.array(self.template[start : start + ROWS_AT_ONCE])
            counts = zip(*((t.ints, t.floats, t.values) for t in self.templates), strict=True)
            for starts, each in zip(self._starts, counts, strict=True):
                more = np.cumsum(np.array(each, np.int64)[template]) + starts[-1]
                starts.extend(array("q", more.tobytes()))
                starts.settle()
        return self._starts

    def _hash_names(
        self, digest: Any, column: NumberColumn, names: Sequence[str | bytes], order: Ints | SpilledColumn
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


def _gathered(column: NumberColumn, starts: NumberColumn, rows: Ints) -> np.ndarray[Any, Any]:
    """Return what a column holds of some rows, one after the other."""
    begin = take(starts, rows)
    counts = take(starts, rows + 1) - begin
    ends = np.cumsum(counts)
    index = np.repeat(begin - (ends - counts), counts) + np.arange(int(counts.sum()))
    return take(column, index)
