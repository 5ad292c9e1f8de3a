"""Where tensors live: allocators, the page table, and the device memory that joins them.

Kernels see virtual addresses; a tensor has one contiguous virtual range whose rows are dealt over the
HBM slices of the PEs it is placed on. Physical addresses are global, so they are also the keys of the
memory store.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from attrs import frozen

from kernbench_core.callsite import call_site, describe_site
from kernbench_core.dtypes import itemsize
from kernbench_core.errors import KernelError, PageFaultError
from kernbench_core.graph import Design, PeSite
from kernbench_core.regions import Region
from kernbench_core.units import format_bytes

VIRTUAL_BASE = 1 << 32
"""First virtual address: 0 and small integers are never valid pointers."""

VIRTUAL_BYTES = 1 << 62
"""Bytes of virtual addresses that one run can use up: they are never given out twice."""


@frozen
class Block:
    """One live allocation: where it starts, what it reserves (bytes, rounded up), and for whom."""

    address: int
    nbytes: int
    owner: object


class FirstFit:
    """Hand out aligned blocks of `[base, base + size)` from the first hole that fits; join holes on free.

    All quantities are bytes. An owner is any object whose `str` names who asked.
    """

    __slots__ = ("_hole_ends", "_hole_starts", "_live", "alignment", "base", "size", "used")

    def __init__(self, base: int, size: int, alignment: int = 1) -> None:
        if base % alignment:
            raise ValueError(f"base must be a multiple of the alignment {alignment}, not {base}; align it.")
        self.base = base
        self.size = size - size % alignment
        self.alignment = alignment
        self.used = 0
        self._live: dict[int, tuple[int, object]] = {}
        self._hole_starts: list[int] = [base] if self.size else []
        self._hole_ends: list[int] = [base + self.size] if self.size else []

    def alloc(self, nbytes: int, owner: object) -> int | None:
        """Reserve `nbytes` (at least one alignment unit); gives the address, or None when no hole fits."""
        need = -(-nbytes // self.alignment) * self.alignment or self.alignment
        starts, ends = self._hole_starts, self._hole_ends
        for index, start in enumerate(starts):
            if ends[index] - start >= need:
                if ends[index] - start == need:
                    del starts[index], ends[index]
                else:
                    starts[index] = start + need
                self._live[start] = (need, owner)
                self.used += need
                return start
        return None

    def free(self, address: int) -> None:
        """Give a block back by its address; an address that is not allocated is a KeyError."""
        nbytes, _ = self._live.pop(address)
        start, end = address, address + nbytes
        self.used -= nbytes
        starts, ends = self._hole_starts, self._hole_ends
        index = bisect_left(starts, start)
        if index < len(starts) and starts[index] == end:
            end = ends[index]
            del starts[index], ends[index]
        if index and ends[index - 1] == start:
            ends[index - 1] = end
        else:
            starts.insert(index, start)
            ends.insert(index, end)

    @property
    def free_bytes(self) -> int:
        """Bytes that are not reserved, in all holes together."""
        return self.size - self.used

    @property
    def largest_hole(self) -> int:
        """Bytes of the largest allocation that still fits."""
        return max((end - start for start, end in zip(self._hole_starts, self._hole_ends, strict=True)), default=0)

    @property
    def holes(self) -> tuple[tuple[int, int], ...]:
        """The free ranges as (start, end), ascending, never touching each other."""
        return tuple(zip(self._hole_starts, self._hole_ends, strict=True))

    def table(self) -> tuple[Block, ...]:
        """The live blocks by ascending address."""
        return tuple(Block(address, *self._live[address]) for address in sorted(self._live))


@frozen
class MappedRange:
    """One contiguous virtual range `[va, end)` that lies `delta` bytes below its physical range."""

    va: int
    end: int
    delta: int
    tensor: str


class PageTable:
    """Translate virtual regions to physical ones. Ranges need no page alignment: a page may be mapped in parts."""

    __slots__ = ("_last", "_mappings", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._mappings: list[MappedRange] = []
        self._last = MappedRange(0, 0, 0, "")

    def map(self, va: int, pa: int, nbytes: int, tensor: str) -> None:
        """Map `[va, va + nbytes)` to `[pa, pa + nbytes)`; a range that is mapped already is a ValueError."""
        index = bisect_left(self._starts, va)
        overlaps_next = index < len(self._starts) and self._starts[index] < va + nbytes
        if overlaps_next or (index and self._mappings[index - 1].end > va):
            raise ValueError(f"virtual range {va:#x} of {nbytes} B must be free, not mapped already; unmap it first.")
        self._starts.insert(index, va)
        self._mappings.insert(index, MappedRange(va, va + nbytes, pa - va, tensor))

    def unmap(self, va: int) -> None:
        """Remove the range that starts at `va`; an address where none starts is a KeyError."""
        index = bisect_left(self._starts, va)
        if index == len(self._starts) or self._starts[index] != va:
            raise KeyError(va)
        del self._starts[index], self._mappings[index]
        self._last = MappedRange(0, 0, 0, "")

    def find(self, va: int) -> MappedRange:
        """Give the range that holds the byte at `va`; PageFaultError when there is none."""
        index = bisect_right(self._starts, va) - 1
        if index >= 0 and va < self._mappings[index].end:
            return self._mappings[index]
        raise PageFaultError(self._fault(va, index))

    def translate(self, region: Region) -> tuple[Region, ...]:
        """Give the physical regions whose bytes, one after another, are those of the virtual `region`."""
        base = region.base
        end = base + (region.rows - 1) * region.pitch + region.row_bytes
        last = self._last
        if not (last.va <= base and end <= last.end):
            last = self._last = self.find(base)
        if end <= last.end:
            return (Region(base + last.delta, region.row_bytes, region.rows, region.pitch),)
        return tuple(self._split(region))

    def _split(self, region: Region) -> list[Region]:
        """Cut a region that several ranges hold: groups of whole rows where possible, pieces of rows elsewhere."""
        found: list[Region] = []
        row = 0
        while row < region.rows:
            base = region.base + row * region.pitch
            mapping = self.find(base)
            room = mapping.end - base - region.row_bytes
            if room < 0:
                found.extend(self._split_row(base, region.row_bytes))
                row += 1
                continue
            whole = region.rows - row
            if region.pitch:
                whole = min(whole, room // region.pitch + 1)
            found.append(Region(base + mapping.delta, region.row_bytes, whole, region.pitch if whole > 1 else 0))
            row += whole
        return found

    def _split_row(self, base: int, nbytes: int) -> list[Region]:
        found = []
        while nbytes:
            mapping = self.find(base)
            piece = min(nbytes, mapping.end - base)
            found.append(Region(base + mapping.delta, piece))
            base += piece
            nbytes -= piece
        return found

    def _fault(self, va: int, index: int) -> str:
        if index < 0:
            return f"virtual address {va:#x} must be mapped, and no tensor lies at or below it; was the tensor freed?"
        near = self._mappings[index]
        return (
            f"virtual address {va:#x} must be mapped, and is {va - near.end} B past the end of tensor "
            f"{near.tensor!r}; was the tensor that lived there freed?"
        )


@frozen
class Segment:
    """The part of a tensor that lies in one PE's HBM slice: virtual and physical start, bytes, PE index."""

    va: int
    pa: int
    nbytes: int
    pe: int


@frozen(eq=False)
class TensorAllocation:
    """A tensor in device memory: row-major, one contiguous virtual range, dealt over HBM slices."""

    name: str
    va: int
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    segments: tuple[Segment, ...]

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def end(self) -> int:
        """First virtual address after the tensor."""
        return self.va + self.nbytes

    @property
    def regions(self) -> tuple[Region, ...]:
        """The physical regions whose bytes, one after another, are the tensor."""
        return tuple(Region(segment.pa, segment.nbytes) for segment in self.segments)


class DeviceMemory:
    """Allocate tensors over the HBM slices of one machine and translate their addresses.

    A freed tensor's physical memory is used again, its virtual addresses never: an old pointer is a page fault.
    """

    def __init__(self, design: Design) -> None:
        self.page_bytes = design.page_bytes
        self.page_table = PageTable()
        self._design = design
        self._next_va = -(-VIRTUAL_BASE // design.page_bytes) * design.page_bytes
        self._slices: dict[int, FirstFit] = {}
        self._live: dict[int, TensorAllocation] = {}
        self._freed: WeakKeyDictionary[TensorAllocation, str] = WeakKeyDictionary()
        self._sites: dict[str, PeSite] | None = None
        #: What a kernel runner keeps for each PE over the whole run, by PE index.
        self.kept: dict[int, Any] = {}

    def allocate(self, shape: Sequence[int], dtype: str, name: str, pes: Sequence[PeSite]) -> TensorAllocation:
        """Reserve a tensor: equal contiguous blocks of rows (elements, if it has one dimension) over `pes` in order.

        The last blocks may be shorter or missing. KernelError when a slice is full; nothing is reserved then.
        """
        dims = tuple(int(extent) for extent in shape)
        if not pes:
            raise KernelError(f"tensor {name!r} must be placed on at least one PE, not on none; name the PEs.")
        if any(extent < 0 for extent in dims):
            raise KernelError(f"tensor {name!r} must have extents of at least 0, not {dims}; correct the shape.")
        nbytes = math.prod(dims) * itemsize(dtype)
        va = self._next_va
        end = va + (-(-nbytes // self.page_bytes) or 1) * self.page_bytes
        if end > VIRTUAL_BYTES:
            raise KernelError(
                f"tensor {name!r} of {format_bytes(nbytes)} must fit in what is left of the virtual addresses, which "
                "are never used again after a free; keep tensors and write them anew instead of freeing them."
            )
        segments: list[Segment] = []
        try:
            for offset, length, pe in self._deal(dims, nbytes, pes):
                segments.append(Segment(va + offset, self._reserve(length, name, pe), length, pe.index))
        except KernelError:
            self._release(segments)
            raise
        self._next_va = end
        for segment in segments:
            self.page_table.map(segment.va, segment.pa, segment.nbytes, name)
        allocation = self._live[va] = TensorAllocation(name, va, dims, dtype, nbytes, tuple(segments))
        return allocation

    def free(self, allocation: TensorAllocation) -> None:
        """Give a tensor's memory back; a later access to it is a page fault. Freeing twice is a KernelError."""
        self.require_live(allocation)
        del self._live[allocation.va]
        self._freed[allocation] = describe_site(call_site())
        for segment in allocation.segments:
            self.page_table.unmap(segment.va)
        self._release(allocation.segments)

    def require_live(self, allocation: TensorAllocation) -> None:
        """Raise a KernelError when a tensor was freed, which says where, or when it is of another run."""
        if self._live.get(allocation.va) is allocation:
            return
        where = self._freed.get(allocation)
        if where is None:
            raise KernelError(
                f"tensor {allocation.name!r} must be of this run, and is of another one; make it with this run's rt."
            )
        raise KernelError(
            f"tensor {allocation.name!r} must be live, and was freed at {where}; free it after its last use, or make a "
            "new tensor."
        )

    def site_of(self, pe_cpu: str) -> PeSite | None:
        """Give the PE whose pe_cpu is the node `pe_cpu`, or None; the first call indexes all PEs."""
        if self._sites is None:
            self._sites = {site.pe_cpu: site for site in self._design.pes}
        return self._sites.get(pe_cpu)

    def tcm_range(self, pe: PeSite) -> tuple[int, int]:
        """Give the physical start and the bytes of a PE's scratchpad."""
        return self._design.address_map.encode(pe.sip, pe.cube, f"tcm{pe.pe}", 0), self._design.tcm_bytes

    def translate(self, regions: Sequence[Region]) -> tuple[Region, ...]:
        """Give the physical regions of virtual ones, in order; PageFaultError where nothing is mapped."""
        if len(regions) == 1:
            return self.page_table.translate(regions[0])
        translate = self.page_table.translate
        return tuple(piece for region in regions for piece in translate(region))

    def free_bytes(self, pe: PeSite) -> int:
        """Give the bytes that are not reserved in a PE's HBM slice."""
        return self._slice(pe).free_bytes

    def _deal(self, dims: tuple[int, ...], nbytes: int, pes: Sequence[PeSite]) -> list[tuple[int, int, PeSite]]:
        """Give (offset, bytes, PE) of each block that is not empty."""
        rows = dims[0] if dims else 1
        if not nbytes:
            return []
        row_bytes = nbytes // rows
        block = -(-rows // len(pes)) * row_bytes
        return [
            (offset, min(block, nbytes - offset), pes[index]) for index, offset in enumerate(range(0, nbytes, block))
        ]

    def _slice(self, pe: PeSite) -> FirstFit:
        found = self._slices.get(pe.index)
        if found is None:
            base = self._design.address_map.encode(pe.sip, pe.cube, f"hbm{pe.pe}", 0)
            found = self._slices[pe.index] = FirstFit(base, self._design.hbm_slice_bytes, self.page_bytes)
        return found

    def _reserve(self, nbytes: int, name: str, pe: PeSite) -> int:
        fit = self._slice(pe)
        address = fit.alloc(nbytes, name)
        if address is None:
            raise KernelError(
                f"the HBM slice of {pe.prefix} must have {format_bytes(nbytes)} free for tensor {name!r}, and has "
                f"{format_bytes(fit.free_bytes)} of {format_bytes(fit.size)} (largest hole "
                f"{format_bytes(fit.largest_hole)}); free a tensor or place it on more PEs."
                + _listing(fit)
            )
        return address

    def _release(self, segments: Sequence[Segment]) -> None:
        for segment in segments:
            self._slices[segment.pe].free(segment.pa)


def _listing(fit: FirstFit) -> str:
    rows = [f"  {block.address:#x}  {block.nbytes:>12} B  {block.owner}" for block in fit.table()]
    return "\n".join([" Allocated there:", *rows]) if rows else ""
