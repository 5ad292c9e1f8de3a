"""The memory store: what each byte of each address space holds, as values by reference.

Semantics are byte-addressable; the cost is that of tensors. A write files one entry per region in an index of pages;
a read of exactly what was written is one dict look-up, any other read finds the entries it touches and makes a view
or an assembly of them. Reading computes nothing and copies nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

import numpy as np

from kernbench_core.errors import StoreError, UninitializedReadError
from kernbench_core.values import dtypes
from kernbench_core.values.arrays import Array, Shape
from kernbench_core.values.region import Region, ascending_pieces, normal, subtract, total_bytes
from kernbench_core.values.store_index import SpaceIndex, Write, WrittenRegion
from kernbench_core.values.value import ArrayValue, AssemblyValue, OpId, Part, ResultValue, Value, sub_parts
from kernbench_core.values.views import AbstractValue, view_of

_Where = int | Region | tuple[Region, ...]

_MANY = 16
"""Parts of an assembly from which on it pays to join those that only stand apart."""


class MemoryStore:
    """Map (space, bytes) to values.

    `data=False` keeps shapes only: writes are forgotten, and a read of anything gives an `AbstractValue`. A space
    appears when it is first written. Addresses are whatever integers the caller uses; kernbench uses physical ones.
    """

    def __init__(self, data: bool = True) -> None:
        self.data = data
        self._spaces: dict[str, SpaceIndex] = {}
        self._abstract: dict[tuple[Shape, str], AbstractValue] = {}

    def __repr__(self) -> str:
        held = ", ".join(f"{space}: {len(index.exact):,} writes" for space, index in sorted(self._spaces.items())[:8])
        return f"<MemoryStore {'with data' if self.data else 'of shapes only'}{held and f', {held}'}>"

    def write(self, space: str, where: _Where, data: Array | Value, writer: OpId | None = None) -> None:
        """Let `where` hold `data` (row-major over its regions, in order), visible at once; `writer` is the op.

        Arrays become read-only, copied once if the caller could still write to them. StoreError when sizes differ, or
        where an element is not at a multiple of its size.
        """
        if not self.data:
            return
        value = data if isinstance(data, Value) else ArrayValue(np.asarray(data))
        nbytes = value.nbytes
        regions = as_regions(where, nbytes)
        _check_place(space, regions, value.shape, value.dtype, "write")
        if nbytes:
            index = self._spaces.get(space)
            if index is None:
                index = self._spaces[space] = SpaceIndex()
            index.insert(Write(regions, value, writer))

    def write_part(self, space: str, region: Region, value: Value, offset: int, writer: OpId | None) -> None:
        """Let a region hold the bytes of `value` from `offset` on: how a saved memory is put back, entry by entry."""
        if not self.data:
            return
        index = self._spaces.setdefault(space, SpaceIndex())
        if offset == 0 and region.nbytes == value.nbytes:
            index.insert(Write((normal(region),), value, writer))
        else:
            index.insert_part(Write((region,), value, writer), offset)

    def read(self, space: str, where: _Where, shape: Shape, dtype: str) -> Array:
        """Return the bytes of `where` as a read-only array of `shape` and `dtype`.

        Another dtype than was written reinterprets the bytes. Raises StoreError when sizes differ or an element is not
        at a multiple of its size, UninitializedReadError for bytes that nobody wrote, PendingDataError when a part is
        pending.
        """
        return self.value(space, where, shape, dtype).array()

    def value(self, space: str, where: _Where, shape: Shape, dtype: str) -> Value:
        """Return what `where` holds now as one value, without computing or copying; raises as `read` does."""
        return self.sample(space, where, shape, dtype)[0]

    def sample(self, space: str, where: _Where, shape: Shape, dtype: str) -> tuple[Value, tuple[OpId, ...]]:
        """Return what `value` does, and the ops that wrote bytes of it (none for what the host wrote)."""
        if not self.data:
            return self._abstract_value(shape, dtype), ()
        return self._sample(self._spaces.get(space), space, where, shape, dtype)

    def holds_results(self, space: str, region: Region) -> bool:
        """Whether some byte of a region is what an op wrote; it does not matter what nobody wrote."""
        index = self._spaces.get(space)
        if index is None:
            return False
        parts: list[Part] = []
        used: list[WrittenRegion] = []
        for piece in ascending_pieces(region):
            index.collect(piece, 0, parts, used)
        shown = {id(part.source) for part in parts}
        return any(e.write.writer is not None and id(e.write.value) in shown for e in used)

    def _sample(
        self, index: SpaceIndex | None, space: str, where: _Where, shape: Shape, dtype: str
    ) -> tuple[Value, tuple[OpId, ...]]:
        regions = as_regions(where, prod(shape) * dtypes.itemsize(dtype))
        if index is not None:
            hit = index.exact.get(regions)
            if hit is not None and hit.value.shape == shape and hit.value.dtype == dtype:
                writer = hit.writer
                return hit.value, () if writer is None else (writer,)
            cached = index.cached(regions, shape, dtype)
            if cached is not None:
                return cached.value, cached.writers
        _check_place(space, regions, shape, dtype, "read")
        if not total_bytes(regions):
            return ArrayValue(np.empty(shape, dtypes.numpy_dtype(dtype))), ()
        return self._assembled(index, space, regions, shape, dtype)

    def has(self, space: str, where: _Where, nbytes: int = 1) -> bool:
        """Tell whether every byte of `where` (an address: the next `nbytes` bytes) has been written."""
        index = self._spaces.get(space)
        if index is None:
            return False
        pieces = [piece for region in as_regions(where, nbytes) for piece in ascending_pieces(region)]
        return not any(subtract(piece, (e.region for e in index.touching(piece))) for piece in pieces)

    def writes(self, space: str, where: _Where, nbytes: int = 1) -> tuple[Write, ...]:
        """Return the writes that `where` overlaps and that are still visible somewhere, newest first."""
        index = self._spaces.get(space)
        if index is None:
            return ()
        regions = as_regions(where, nbytes)
        entries = [e for r in regions for piece in ascending_pieces(r) for e in index.touching(piece)]
        entries.sort(key=lambda e: -e.sequence)
        return tuple(dict.fromkeys(e.write for e in entries))

    def stamp(self, space: str, regions: Iterable[Region] | None = None) -> int:
        """Return a number that grows with each write to a space, or what it was after the last write to `regions`."""
        index = self._spaces.get(space)
        if index is None:
            return 0
        return index.stamp if regions is None else max(map(index.stamp_of, regions), default=0)

    def forget(self, space: str, where: _Where, nbytes: int = 1) -> None:
        """Let `where` (an address: the next `nbytes` bytes) be memory that nobody has written."""
        index = self._spaces.get(space)
        if index is not None:
            for region in as_regions(where, nbytes):
                for piece in ascending_pieces(region):
                    index.forget(piece)

    def snapshot(self) -> MemoryStore:
        """Return a fork: it shares the values, and later writes to either do not show in the other."""
        fork = MemoryStore(self.data)
        fork._spaces = {name: index.fork() for name, index in self._spaces.items()}
        return fork

    def spaces(self) -> tuple[str, ...]:
        """Return the names of the spaces that were written, sorted."""
        return tuple(sorted(self._spaces))

    def entries(self, space: str) -> Iterator[WrittenRegion]:
        """Yield the entries of a space, oldest first; a later one hides what it overlaps of an earlier one."""
        index = self._spaces.get(space)
        return iter(()) if index is None else iter(index.entries())

    def compact(self) -> None:
        """Forget entries of which no byte is visible any more, so that their values can be freed."""
        for index in self._spaces.values():
            index.compact()

    def results(self) -> Iterator[ResultValue]:
        """Yield every op result that memory holds a byte of (some more than once)."""
        for space in self.spaces():
            for entry in self.entries(space):
                yield from entry.write.value.results()

    def _abstract_value(self, shape: Shape, dtype: str) -> AbstractValue:
        value = self._abstract.get((shape, dtype))
        if value is None:
            value = self._abstract[shape, dtype] = AbstractValue(shape, dtype)
        return value

    def _assembled(
        self, index: SpaceIndex | None, space: str, regions: tuple[Region, ...], shape: Shape, dtype: str
    ) -> tuple[Value, tuple[OpId, ...]]:
        parts: list[Part] = []
        used: list[WrittenRegion] = []
        offset = 0
        for region in regions:
            for piece in ascending_pieces(region):
                found = 0 if index is None else index.collect(piece, offset, parts, used)
                if found < piece.nbytes:
                    raise _unwritten(index, space, regions, piece)
                offset += piece.nbytes
        value = _as_value(parts, shape, dtype)
        shown = {id(part.source) for part in parts}
        known: dict[OpId, None] = {}
        for entry in used:
            write = entry.write
            writer = write.writer
            if writer is not None and id(write.value) in shown:
                known[writer] = None
        writers = tuple(known)
        if index is not None:
            index.remember(regions, shape, dtype, value, writers, used)
        return value, writers


def as_regions(where: _Where, nbytes: int) -> tuple[Region, ...]:
    """Return `where` as regions in their one normal form; a plain address stands for the next `nbytes` bytes."""
    if type(where) is tuple:
        for region in where:
            if region.pitch and (region.rows == 1 or region.pitch == region.row_bytes):
                return tuple([normal(r) for r in where])
        return where
    if isinstance(where, Region):
        return (normal(where),)
    return (Region(int(where), nbytes),)  # type: ignore[arg-type]


def _unwritten(
    index: SpaceIndex | None, space: str, regions: tuple[Region, ...], piece: Region
) -> UninitializedReadError:
    missing = [piece] if index is None else subtract(piece, (e.region for e in index.touching(piece)))
    first = min(missing, key=lambda r: r.base)
    where = ", ".join(map(str, regions[:4])) + (", ..." if len(regions) > 4 else "")
    return UninitializedReadError(
        f"A read of {space} {where} must find memory that was written, not {total_bytes(missing)} unwritten "
        f"bytes from 0x{first.base:x} to 0x{first.base + first.row_bytes:x}; store to them first.",
        tuple((region.base, region.row_bytes, region.rows, region.pitch) for region in missing),
    )


def _check_place(space: str, regions: tuple[Region, ...], shape: Shape, dtype: str, verb: str) -> None:
    item = dtypes.itemsize(dtype)
    need, have = prod(shape) * item, total_bytes(regions)
    if need != have:
        raise StoreError(
            f"A {verb} of {dtype}{list(shape)} at {space} {_show(regions)} must cover {need} bytes, not {have}; "
            "give regions of the tensor's size."
        )
    for region in regions:
        if (region.base | region.pitch | region.row_bytes) % item:
            raise StoreError(
                f"A {verb} of {dtype}{list(shape)} at {space} {_show(region)} must start, and have its rows, at "
                f"multiples of {item} bytes, the size of {dtype}; align the address."
            )


def _show(where: Region | tuple[Region, ...]) -> str:
    first = where if isinstance(where, Region) else where[0] if where else "(no region)"
    more = f" and {len(where) - 1} more" if isinstance(where, tuple) and len(where) > 1 else ""
    return f"{first}{more}"


def _as_value(parts: list[Part], shape: Shape, dtype: str) -> Value:
    """Make the plainest value of some parts: the source itself, a view of it, or an assembly."""
    parts = _merged(parts)
    if len(parts) > _MANY and sum([part.dst.nbytes for part in parts]) == prod(shape) * dtypes.itemsize(dtype):
        parts = _merged_by_source(parts)
    if len(parts) > 1:
        return AssemblyValue(shape, dtype, tuple(parts))
    only = parts[0]
    whole = only.src.contiguous and only.src.base == 0 and only.src.nbytes == only.source.nbytes
    if whole and only.source.dtype == dtype:
        if only.source.shape == shape:
            return only.source
        if not isinstance(only.source, ArrayValue):
            return AssemblyValue(shape, dtype, (only,))
    flat = sub_parts(only.source, only.src, only.dst)
    if len(flat) == 1 and isinstance(flat[0].source, ArrayValue) and flat[0].dst.contiguous:
        view = view_of(flat[0].source, flat[0].src, shape, dtype)
        if view is not None:
            return view
    return AssemblyValue(shape, dtype, tuple(flat))


def _merged(parts: list[Part]) -> list[Part]:
    """Join neighbours that continue each other in both source and destination."""
    if len(parts) == 1:
        return parts
    out = [parts[0]]
    for part in parts[1:]:
        _append(out, part)
    return out


def _merged_by_source(parts: list[Part]) -> list[Part]:
    """Join parts of one source that continue each other, wherever they stand among parts that do not overlap.

    Rows that are dealt to several memories come back from each of them at one step.
    """
    by_source: dict[int, list[Part]] = {}
    for part in parts:
        _append(by_source.setdefault(id(part.source), []), part)
    return [part for joined in by_source.values() for part in joined]


def _append(parts: list[Part], part: Part) -> None:
    """Add a part, as more of the last one if it continues that in both source and destination."""
    last = parts[-1] if parts else None
    src = _continued(last.src, part.src) if last is not None and last.source is part.source else None
    dst = _continued(last.dst, part.dst) if last is not None and src is not None else None
    if src is not None and dst is not None:
        parts[-1] = Part(dst, part.source, src)
    else:
        parts.append(part)


def _continued(first: Region, then: Region) -> Region | None:
    """Return the one region whose linear bytes are those of both, one after the other, if there is one."""
    if first.contiguous and then.contiguous and first.base + first.nbytes == then.base:
        return Region(first.base, first.nbytes + then.nbytes)
    pitch = first.pitch or then.pitch or then.base - first.base
    if first.row_bytes != then.row_bytes or then.base != first.base + first.rows * pitch or pitch < first.row_bytes:
        return None
    if (first.rows > 1 and first.pitch != pitch) or (then.rows > 1 and then.pitch != pitch):
        return None
    return Region(first.base, first.row_bytes, first.rows + then.rows, pitch)
