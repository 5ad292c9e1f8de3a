"""The columns behind the op log: a record is a template (interned) plus the numbers that the template leaves open.

The template holds what many records share: names, shapes, dtypes, spaces, the geometry of single regions. Addresses and
other top-level integers go to one integer column, floats to a float column, whatever is neither to a side table.
How a record is encoded depends on that record alone, so equal records give equal columns in any order of appending.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from kernbench_core.canonical import canonical
from kernbench_core.oplog_params import Plans, RawAccess, decode_accesses, decode_params, encode_params
from kernbench_core.regions import Region
from kernbench_core.values import OpId, ResultValue, Value

if TYPE_CHECKING:
    from kernbench_core.oplog import OpDescription


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

    def __init__(self) -> None:
        self.t_start, self.t_end = array("d"), array("d")
        self.component, self.template, self.sequence = array("i"), array("i"), array("i")
        self.op_pe, self.op_issue = array("i"), array("i")
        self.stage_pe, self.stage_issue = array("i"), array("i")
        self.ints, self.floats = array("q"), array("d")
        self.values: list[Value] = []
        self.side: dict[int, tuple[Any, ...]] = {}
        self.components: dict[str, int] = {}
        self.templates: list[Template] = []
        self._template_ids: dict[tuple[Any, ...], int] = {}
        self._plans: Plans = {}
        self._regions: dict[tuple[Region, ...], tuple[Region, ...]] = {}
        self._next_sequence: dict[str, int] = {}
        self._order: Ints | None = None
        self._starts = (array("q", [0]), array("q", [0]), array("q", [0]))
        self._names: list[str] = []

    def __len__(self) -> int:
        return len(self.t_start)

    def append(
        self, t_start: float, t_end: float, component: str, described: OpDescription, sequence: int | None = None
    ) -> None:
        """Add one record; see `OpLog.append`."""
        ints: list[int] = []
        floats: list[float] = []
        side: list[Any] = []
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

    def add_template(self, template: Template) -> int:
        """Add a template that is not there yet; return its number."""
        number = self._template_ids[template.sig] = len(self.templates)
        self.templates.append(template)
        return number

    def order(self) -> Ints:
        """Return the rows in the order (t_start, component name, sequence)."""
        if self._order is None:
            names = sorted(self.components)
            rank = np.empty(len(names), np.int64)
            rank[[self.components[name] for name in names]] = np.arange(len(names))
            ranks = rank[np.array(self.component, np.int64)] if len(self) else np.empty(0, np.int64)
            self._order = np.lexsort((np.array(self.sequence), ranks, np.array(self.t_start)))
        return self._order

    def op_positions(self) -> Iterator[tuple[OpId, int]]:
        """Yield every op with the position, in order, of the record that is its making; stages have none."""
        order = self.order()
        pes, issues = np.array(self.op_pe, np.int64)[order], np.array(self.op_issue, np.int64)[order]
        positions = np.flatnonzero((pes >= 0) & (np.array(self.stage_pe, np.int64)[order] < 0))
        ops = zip(pes[positions].tolist(), issues[positions].tolist(), strict=True)
        yield from zip(ops, positions.tolist(), strict=True)

    def example_rows(self, first: int) -> list[int]:
        """Return one row of each template among the rows from `first` on; stages are left out."""
        template = np.array(self.template[first:])
        rows = np.flatnonzero(np.array(self.stage_pe[first:]) < 0)
        _, at = np.unique(template[rows], return_index=True)
        return (rows[at] + first).tolist()  # type: ignore[no-any-return]

    def makers(self, first: int) -> Iterator[tuple[int, float, ResultValue, tuple[Value, ...]]]:
        """Yield row, start, result and input values of every row from `first` on that computes its own result."""
        starts = self._row_starts()[2]
        own = (np.array(self.stage_pe[first:]) < 0) & (np.array(self.op_pe[first:]) >= 0)
        for row in (np.flatnonzero(own) + first).tolist():
            if not self.templates[self.template[row]].sig[3]:
                continue
            begin, end = starts[row], starts[row + 1]
            if begin == end:
                continue
            result = self.values[end - 1]
            if type(result) is ResultValue and result.op_id == (self.op_pe[row], self.op_issue[row]):
                yield row, self.t_start[row], result, tuple(self.values[begin : end - 1])

    def row(self, row: int) -> tuple[float, float, str, Head, dict[str, Any], list[RawAccess]]:
        """Rebuild one row: times, component, head, parameters, accesses (the written one last)."""
        template = self.templates[self.template[row]]
        int_starts, float_starts, value_starts = self._row_starts()
        first = int_starts[row]
        ints = self.ints[first : first + template.ints].tolist()
        floats = iter(self.floats[float_starts[row] : float_starts[row] + template.floats])
        start = value_starts[row]
        values = iter(self.values[start : start + template.values])
        side = iter(self.side.get(row, ()))
        sig = template.sig
        accesses, at, used = decode_accesses(sig, ints, values, side)
        op_id = _op_id(self.op_pe[row], self.op_issue[row])
        reads = [value for _, _, value in accesses]
        if sig[3]:
            reads.pop()
        params = decode_params(sig[at : at + 5], ints, used, floats, side, op_id, reads)
        head = (
            sig[0],
            sig[1],
            sig[2],
            op_id,
            _op_id(self.stage_pe[row], self.stage_issue[row]),
            sig[3],
        )
        return self.t_start[row], self.t_end[row], self._component_names()[self.component[row]], head, params, accesses

    def sha256(self) -> str:
        """Return the hash of the records in order, values left out; equal logs hash equal however they were filled."""
        order = self.order()
        digest = hashlib.sha256(b"kernbench.oplog/1")
        self._hash_names(digest, self.component, self._component_names(), order)
        self._hash_names(digest, self.template, [canonical(t.sig) for t in self.templates], order)
        for times in (self.t_start, self.t_end):
            digest.update(np.array(times, "<f8")[order].tobytes())
        for ids in (self.op_pe, self.op_issue, self.stage_pe, self.stage_issue):
            digest.update(np.array(ids, "<i8")[order].tobytes())
        int_starts, float_starts, _ = self._row_starts()
        digest.update(_gathered(np.array(self.ints, "<i8"), np.array(int_starts), order).tobytes())
        digest.update(_gathered(np.array(self.floats, "<f8"), np.array(float_starts), order).tobytes())
        if self.side:
            known: dict[int, bytes] = {}
            for row in order.tolist():
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

    def _row_starts(self) -> tuple[array[int], array[int], array[int]]:
        """Return where the integers, floats and values of each row start, and after the last row where they end.

        Only the rows that were appended since the last time are looked at.
        """
        known = len(self._starts[0]) - 1
        if known < len(self):
            template = np.array(self.template[known:])
            counts = zip(*((t.ints, t.floats, t.values) for t in self.templates), strict=True)
            for starts, each in zip(self._starts, counts, strict=True):
                more = np.cumsum(np.array(each, np.int64)[template]) + starts[-1]
                starts.frombytes(more.tobytes())
        return self._starts

    def _hash_names(self, digest: Any, column: Sequence[int], names: Sequence[str | bytes], order: Ints) -> None:
        """Hash a column of name numbers as the sorted names and the ranks of the rows."""
        by_name = sorted(range(len(names)), key=names.__getitem__)
        rank = np.empty(len(names), "<i8")
        rank[by_name] = np.arange(len(names))
        for at in by_name:
            digest.update(canonical(names[at]))
        if len(order):
            digest.update(rank[np.array(column, np.int64)[order]].tobytes())


def _op_id(pe: int, issue: int) -> OpId | None:
    return None if pe < 0 else (pe, issue)


def _gathered(column: np.ndarray[Any, Any], starts: Ints, order: Ints) -> np.ndarray[Any, Any]:
    """Return the column with its rows' runs in `order`."""
    counts = np.diff(starts)[order]
    ends = np.cumsum(counts)
    index = np.repeat(starts[:-1][order] - (ends - counts), counts) + np.arange(int(counts.sum()))
    return column[index]
