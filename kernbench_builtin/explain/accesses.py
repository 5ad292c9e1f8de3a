"""Which bytes of HBM launches touch: accesses by template and operand, and ranges of bytes as sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from attrs import frozen

from kernbench_core.oplog.spill import take

if TYPE_CHECKING:
    from kernbench_core.host.host_program import LaunchHandle
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.oplog.columns import Columns
    from kernbench_core.values.region import Region

ByteRanges = npt.NDArray[np.int64]
"""Ranges of bytes, a row (start, end) for each, ascending and apart from each other."""

NO_SPANS: Final[ByteRanges] = np.zeros((0, 2), np.int64)
#: So many regions are added up at once.
_TOGETHER: Final = 1 << 14


def touched(session: GraphEngine, accesses: Sequence[HbmAccess]) -> tuple[list[ByteRanges], list[ByteRanges]]:
    """Return the bytes of HBM that each launch read, and wrote, where cells of tensors have one place."""
    handles = session.shared.launches
    found: list[tuple[list[ByteRanges], list[ByteRanges]]] = [([], []) for _ in handles]
    for access in accesses:
        for each in distinct(access.launch).tolist():
            if each >= 0:
                found[each][access.writes].append(access.bytes_of(access.launch == each))
    places = [np.array(sorted(_places(handle)), np.int64).reshape(-1, 3) for handle in handles]
    return tuple(  # type: ignore[return-value]
        [_moved(joined(NO_SPANS, *each[side]), place) for each, place in zip(found, places, strict=True)]
        for side in (0, 1)
    )


def loads_of_stored(
    session: GraphEngine, accesses: Sequence[HbmAccess], launch: int, pe: int
) -> npt.NDArray[np.int64]:  # fmt: skip
    """Return the rows of a PE's loads, in one launch, of bytes that any PE stores in it, before or after."""
    op_pe, found = session.op_log.columns.op_pe, [NO_SPANS[:, 0]]
    stored = joined(NO_SPANS, *(each.bytes_of(each.launch == launch) for each in accesses if each.writes))
    for access in accesses if len(stored) else ():
        if not access.writes:
            base, row_bytes, count, pitch = access.table.T
            at = np.searchsorted(stored[:, 1], base, "right")
            begins = np.append(stored[:, 0], np.iinfo(np.int64).max)[at]
            meets = begins < base + (count - 1) * pitch + row_bytes
            own = (access.launch == launch) & (take(op_pe, access.rows) == pe)
            found.append(access.rows[own & (access.each(meets) > 0)])
    return np.concatenate(found)


def places_of(session: GraphEngine, accesses: Sequence[HbmAccess], launch: int, pe: int) -> int:
    """Return at how many addresses accesses of a PE in one launch begin, of those alike that begin at most of them."""
    op_pe = session.op_log.columns.op_pe
    owns = ((each, (each.launch == launch) & (take(op_pe, each.rows) == pe)) for each in accesses)
    return max((len(distinct(each.bases()[own])) for each, own in owns), default=0)


def _launches(handles: Sequence[LaunchHandle]) -> Callable[[Any, Any], npt.NDArray[np.int64]]:
    """Return what tells of PEs and times (ns) which launch ran there: the last that started; -1 where none had."""
    began: dict[int, list[tuple[float, int]]] = {}
    for number, handle in enumerate(handles):
        for pe in handle.launch.ended_ns:
            began.setdefault(pe, []).append((handle.launch.started_ns[pe], number))

    def launch_of(pes: npt.NDArray[Any], times: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        found = np.full(len(pes), -1, np.int64)
        for pe, starts in began.items():
            starts.sort()
            at = np.flatnonzero(pes == pe)
            place = np.searchsorted([time for time, _ in starts], times[at], "right")
            found[at] = np.array([-1, *(number for _, number in starts)])[place]
        return found

    return launch_of


@frozen
class HbmAccess:
    """Where records of one template access HBM: each has one or several regions of one `table`.

    `rows` are those of the op log, `template` their number, `launch` the launch of each, -1 for none. `at` says which
    of so many `lists` of regions each record has, `owner` to which list each region of the table belongs: a row (base,
    row bytes, rows, pitch).
    """

    template: int
    rows: npt.NDArray[np.int64]
    launch: npt.NDArray[np.int64]
    writes: bool
    at: npt.NDArray[np.int64]
    lists: int
    owner: npt.NDArray[np.int64]
    table: npt.NDArray[np.int64]

    def each(self, of_region: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Add up a figure of regions for each record."""
        return np.bincount(self.owner, of_region, self.lists).astype(np.int64)[self.at]

    def bases(self) -> npt.NDArray[np.int64]:
        """Return the address at which each record begins; of one without bytes, any."""
        first = np.searchsorted(self.owner, self.at)
        return self.table[np.minimum(first, len(self.table) - 1), 0] if len(self.table) else np.zeros_like(first)

    def bytes_of(self, own: npt.NDArray[np.bool_]) -> ByteRanges:
        """Return the bytes that some of the records access."""
        some = np.zeros(self.lists, bool)
        some[self.at[own]] = True
        regions = np.flatnonzero(some[self.owner])
        parts = (self.table[regions[at : at + _TOGETHER]] for at in range(0, len(regions), _TOGETHER))
        return joined(NO_SPANS, *(spans_of(part) for part in parts))


def hbm_accesses(session: GraphEngine) -> list[HbmAccess]:
    """Return all accesses of PEs' ops to HBM, by template and operand."""
    columns = session.op_log.columns
    launch_of, found = _launches(session.shared.launches), list[HbmAccess]()
    moves = np.array(["hbm" in columns.form(number).spaces for number in range(len(columns.templates))], bool)
    template = np.asarray(columns.template[:])
    rows = np.flatnonzero(moves[template] & (np.asarray(columns.stage_pe[:]) < 0)) if len(moves) else NO_SPANS[:, 0]
    rows = rows[np.argsort(template[rows], kind="stable")]
    launch = launch_of(take(columns.op_pe, rows), take(columns.t_start, rows))
    ends = [*np.flatnonzero(np.diff(template[rows])) + 1, len(rows)]
    for first, end in pairwise([0, *ends]):
        if end > first:
            number = int(template[rows[first]])
            found.extend(_accesses_of(columns, number, rows[first:end], launch[first:end]))
    return found


def _accesses_of(
    columns: Columns, number: int, rows: npt.NDArray[np.int64], launch: npt.NDArray[np.int64]
) -> Iterator[HbmAccess]:
    """Yield each access to HBM of records of one template."""
    form = columns.form(number)
    last = len(form.geometry) - 1 if form.writes else -1
    begins, several = take(columns.row_starts()[0], rows), 0
    for side, (space, _, row_bytes, count, pitch) in enumerate(form.geometry):
        place = form.base_places[side]
        if space == "hbm" and place >= 0 and row_bytes is not None:
            all_bases = take(columns.ints, begins + place)
            bases = distinct(all_bases)
            at = np.searchsorted(bases, all_bases)
            table = np.stack([bases, *(np.full(len(bases), each) for each in (row_bytes, count, pitch))], axis=1)
            yield HbmAccess(number, rows, launch, side == last, at, len(bases), np.arange(len(bases)), table)
        elif space == "hbm" and row_bytes is None:
            regions = [things[several] for things in columns.sides_of(rows)]
            known = {id(each): each for each in regions}
            place_of = {key: at for at, key in enumerate(known)}
            at = np.array([place_of[id(each)] for each in regions], np.int64)
            owner = np.repeat(np.arange(len(known)), [len(each) for each in known.values()])
            table = _table(chain.from_iterable(known.values()))
            yield HbmAccess(number, rows, launch, side == last, at, len(known), owner, table)
        several += row_bytes is None


def _table(regions: Iterable[Region]) -> npt.NDArray[np.int64]:
    found = [(each.base, each.row_bytes, each.rows, each.pitch) for each in regions]
    return np.array(found, np.int64).reshape(-1, 4)


def _places(handle: LaunchHandle) -> Iterator[tuple[int, int, int]]:
    """Yield of each segment of the tensors of a launch its address, that of its cell among virtual ones, and its bytes.

    The cells of a tensor are taken one behind the other, so that its copies are one, and no address is used again.
    """
    for tensor in handle.tensors:
        at, cells = tensor.allocation.va, dict[int, int]()
        for segment in sorted(tensor.allocation.segments, key=lambda segment: segment.cell):
            if segment.cell not in cells:
                cells[segment.cell] = at
                at += segment.nbytes
            yield segment.pa, cells[segment.cell], segment.nbytes


def spans_of(table: npt.NDArray[np.int64]) -> ByteRanges:
    """Return the bytes of some regions, each a row (base, row bytes, rows, pitch)."""
    base, row_bytes, count, pitch = table.T
    which = np.repeat(np.arange(len(base)), count)
    row = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    starts = base[which] + row * pitch[which]
    return joined(np.stack([starts, starts + row_bytes[which]], axis=1))


def _moved(spans: ByteRanges, places: npt.NDArray[np.int64]) -> ByteRanges:
    """Cut spans at the ends of segments (address, place, bytes), and move what is in a segment to its place."""
    if not len(spans) or not len(places):
        return spans
    edges = distinct(np.concatenate([places[:, 0], places[:, 0] + places[:, 2]]))
    starts = distinct(np.concatenate([spans[:, 0], edges[_inside(spans, edges)]]))
    ends = distinct(np.concatenate([spans[:, 1], edges[_inside(spans, edges)]]))
    at = np.searchsorted(places[:, 0], starts, "right") - 1
    place = places[np.maximum(at, 0)]
    mapped = (at >= 0) & (starts < place[:, 0] + place[:, 2])
    moved = np.where(mapped, place[:, 1] - place[:, 0], 0)
    return joined(np.stack([starts + moved, ends + moved], axis=1))


def _inside(spans: ByteRanges, edges: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    at = np.maximum(np.searchsorted(spans[:, 0], edges, "left") - 1, 0)
    found: npt.NDArray[np.bool_] = (spans[at, 0] < edges) & (edges < spans[at, 1])
    return found


def distinct(found: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return each value once, ascending: what np.unique does, which takes 30 ms to import what it needs for itself."""
    found = np.sort(found)
    return found[np.concatenate([[True], found[1:] != found[:-1]])] if len(found) else found


# Ranges of bytes --------------------------------------------------------------------------------------


def joined(*several: ByteRanges) -> ByteRanges:
    """Return the bytes that are in any of several ranges; these may overlap and come in any order."""
    spans = np.concatenate(several)
    if not len(spans):
        return NO_SPANS
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    reach = np.maximum.accumulate(spans[:, 1])
    first = np.concatenate([[True], spans[1:, 0] > reach[:-1]])
    last = np.concatenate([first[1:], [True]])
    return np.stack([spans[first, 0], reach[last]], axis=1)


def length(spans: ByteRanges) -> int:
    """Return how many bytes there are."""
    return int((spans[:, 1] - spans[:, 0]).sum())


def common(one: ByteRanges, other: ByteRanges) -> int:
    """Return how many bytes are in both."""
    return length(one) + length(other) - length(joined(one, other))
