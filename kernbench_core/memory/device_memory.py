"""Where tensors live: allocators, and the device memory that joins them with the page table.

Kernels see virtual addresses; a tensor has one contiguous virtual range whose cells lie in the HBM slices
of the PEs it is placed on. Physical addresses are global, so they are also the keys of the memory store.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from attrs import field, frozen

from kernbench_core.callsite import call_site, describe_site, site_of_frame
from kernbench_core.errors import KernelError
from kernbench_core.graph import PeSite
from kernbench_core.memory.allocator import FirstFit
from kernbench_core.memory.page_table import Mapping, PageTable
from kernbench_core.memory.placement import MESH_DIMS, Layout, Placements, dealt_rows, resolve
from kernbench_core.topology.address import OFFSET_BITS
from kernbench_core.topology.design import Design
from kernbench_core.units import format_bytes
from kernbench_core.values.dtypes import info, itemsize
from kernbench_core.values.region import Region

VIRTUAL_BASE = 1 << 32
"""First virtual address: 0 and small integers are never valid pointers."""

#: Tensors that the sentence about a full slice lists.
_MOST_LISTED = 12


@frozen
class TensorSegment:
    """One copy of one cell of a tensor, in one PE's HBM slice.

    `va` is the virtual address of its first byte, `pa` the physical start of its `nbytes`, `pe` the PE's index.
    """

    va: int
    pa: int
    nbytes: int
    pe: int
    cell: int = 0


@frozen(eq=False, repr=False)
class TensorAllocation:
    """A tensor in device memory: row-major, one contiguous virtual range, its cells in HBM slices as `layout` says.

    `segments` are in PE order. A tensor without a layout is one cell. `whole` names the tensor that this is a PE's
    shard of; by default it is a tensor itself.
    """

    name: str
    va: int
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    segments: tuple[TensorSegment, ...]
    layout: Layout | None = None
    whole: str = field()

    @whole.default
    def _own_name(self) -> str:
        return self.name

    def __repr__(self) -> str:
        segments = f"{len(self.segments)} segment{'' if len(self.segments) == 1 else 's'}"
        return f"<TensorAllocation {self.name} {self.dtype}{list(self.shape)} at 0x{self.va:x} in {segments}>"

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def end(self) -> int:
        """First virtual address after the tensor."""
        return self.va + self.nbytes

    @property
    def replicas(self) -> int:
        """How many copies there are."""
        return 1 if self.layout is None else self.layout.replicas

    def replica(self, number: int = 0) -> tuple[TensorSegment, ...]:
        """Give the segments of one copy, by cell: each cell's holder of this number, in PE order."""
        held: dict[int, list[TensorSegment]] = {}
        for segment in self.segments:
            held.setdefault(segment.cell, []).append(segment)
        return tuple(held[cell][number] for cell in sorted(held))

    @property
    def regions(self) -> tuple[Region, ...]:
        """The physical regions of the first copy, cell by cell."""
        return tuple(Region(segment.pa, segment.nbytes) for segment in self.replica())

    @property
    def all_regions(self) -> tuple[Region, ...]:
        """The physical regions of every copy, PE by PE."""
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
        # by the unit part of their addresses
        self._units: dict[int, FirstFit] = {}
        self._live: dict[int, TensorAllocation] = {}
        self._local: dict[int, dict[int, TensorAllocation]] = {}
        self._freed: WeakKeyDictionary[TensorAllocation, str] = WeakKeyDictionary()
        self._sites: dict[str, PeSite] | None = None

    def allocate(
        self,
        shape: Sequence[int],
        dtype: str,
        name: str,
        pes: Sequence[PeSite],
        placement: Placements | None = None,
    ) -> TensorAllocation:
        """Reserve a tensor over `pes`, which are whole SIPs in PE order where a placement is given.

        Without one: equal contiguous blocks of rows (elements, if it has one dimension), the last shorter or missing.
        KernelError when a slice is full (nothing is reserved then), and as `placement.resolve` says.
        """
        dims = tuple(int(extent) for extent in shape)
        dtype, item = info(dtype).name, itemsize(dtype)  # numpy.str_ is equal to a name, but the log keeps str alone
        nbytes = math.prod(dims) * item
        va = self._next_va
        if placement is None or not nbytes:
            layout = dealt_rows(dims, nbytes, len(pes))
        else:
            layout = resolve(name, dims, item, placement, self._mesh(pes), MESH_DIMS)
        segments = self._place(va, layout, name, pes)
        found = TensorAllocation(name, va, dims, dtype, nbytes, segments, layout)
        self._next_va = self._after(va, nbytes)
        if nbytes:
            self.page_table.map(self._mapping(found, layout))
        self._live[va] = found
        return found

    def local(self, allocation: TensorAllocation, pe: int) -> TensorAllocation | None:
        """Give a PE's own cell of a tensor as a tensor, mapped at addresses of its own; None where it holds none."""
        known = self._local.setdefault(allocation.va, {})
        if pe not in known:
            own = next((segment for segment in allocation.segments if segment.pe == pe), None)
            layout = allocation.layout
            if own is None or layout is None:
                return None
            name = f"{allocation.name} on {self._design.pes[pe].prefix}"
            shape = layout.shape_of(own.cell, allocation.shape)
            va = self._next_va
            self._next_va = self._after(va, own.nbytes)
            one = dealt_rows(shape, own.nbytes, 1)
            known[pe] = TensorAllocation(
                name, va, shape, allocation.dtype, own.nbytes, (TensorSegment(va, own.pa, own.nbytes, pe),), one,
                allocation.name,
            )  # fmt: skip
            self.page_table.map(Mapping(va, one, (own.pa,), name))
        return known[pe]

    def free(self, allocation: TensorAllocation) -> None:
        """Give a tensor's memory back; a later access to it is a page fault. Freeing twice is a KernelError."""
        self.require_live(allocation)
        del self._live[allocation.va]
        self._freed[allocation] = describe_site(call_site())
        for mapped in (allocation, *self._local.pop(allocation.va, {}).values()):
            if mapped.nbytes:
                self.page_table.unmap(mapped.va)
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

    def translate(self, regions: Sequence[Region], pe: int | None = None) -> tuple[Region, ...]:
        """Give the physical regions of virtual ones, in order, as the PE of this index sees them.

        Of a tensor with copies a PE sees the one that it reaches soonest. PageFaultError where nothing is mapped.
        """
        translate = self.page_table.translate
        if len(regions) == 1:
            return translate(regions[0], pe)
        return tuple(piece for region in regions for piece in translate(region, pe))

    def unit_of(self, pe: PeSite, tier: str) -> FirstFit:
        """Give the allocator of a memory near a PE: of its HBM slice ("hbm") or its cube's SRAM ("sram")."""
        unit, size, alignment = "sram", self._design.sram_bytes, 64
        if tier == "hbm":
            unit, size, alignment = f"hbm{pe.pe}", self._design.hbm_slice_bytes, self.page_bytes
        base = self._design.address_map.encode(pe.sip, pe.cube, unit)
        found = self._units.get(base >> OFFSET_BITS)
        if found is None:
            found = self._units[base >> OFFSET_BITS] = FirstFit(base, size, alignment)
        return found

    def unreserve(self, address: int) -> None:
        """Give back a block by its address."""
        self._units[address >> OFFSET_BITS].free(address)

    def block_at(self, pa: int) -> tuple[int, int, int] | None:
        """Give the allocated block that holds the physical byte at `pa` as (start, end, number), or None."""
        unit = self._units.get(pa >> OFFSET_BITS)
        return None if unit is None else unit.block_at(pa)

    def _mesh(self, pes: Sequence[PeSite]) -> tuple[int, int, int]:
        """Give the extents of the mesh of some PEs: SIPs, cubes of each, PEs of each."""
        return len({site.sip for site in pes}), self._design.cubes_per_sip, self._design.pes_per_cube

    def _after(self, va: int, nbytes: int) -> int:
        """Give the first page after a virtual range."""
        return va + (-(-nbytes // self.page_bytes) or 1) * self.page_bytes

    def _place(self, va: int, layout: Layout, name: str, pes: Sequence[PeSite]) -> tuple[TensorSegment, ...]:
        """Reserve every PE's cell; nothing is kept when one does not fit."""
        copies = f" in {layout.replicas} copies" if layout.replicas > 1 else ""
        site = site_of_frame(sys._getframe())
        owner = f"{name}{copies}" if site is None else f"{name}{copies}, made at {describe_site(site)}"
        first = [layout.regions(cell)[0].base if layout.size(cell) else 0 for cell in range(layout.cells)]
        segments: list[TensorSegment] = []
        try:
            for pe, cell in zip(pes, layout.cell_of, strict=False):
                nbytes = layout.size(cell)
                if nbytes:
                    start = self._reserve(nbytes, name, owner, pe)
                    segments.append(TensorSegment(va + first[cell], start, nbytes, pe.index, cell))
        except KernelError:
            self._release(segments)
            raise
        return tuple(segments)

    def _mapping(self, allocation: TensorAllocation, layout: Layout) -> Mapping:
        starts = dict.fromkeys(range(layout.cells), 0)
        holders: dict[int, list[TensorSegment]] = {}
        for segment in allocation.segments:
            holders.setdefault(segment.cell, []).append(segment)
        starts.update((cell, held[0].pa) for cell, held in holders.items())

        def nearest(pe: int | None, cell: int) -> int:
            held = holders[cell]
            return held[0].pa if pe is None else min(held, key=lambda segment: self._distance(pe, segment.pe)).pa

        several = nearest if layout.replicas > 1 else None
        return Mapping(allocation.va, layout, [starts[cell] for cell in range(layout.cells)], allocation.name, several)

    def _distance(self, pe: int, other: int) -> tuple[bool, int, bool]:
        """Rank how far another PE's slice is: its own SIP before others, then cubes by hops, then the same PE there.

        PEs of one cube, of the same place, thus read the same copy in turn, and not all the first one.
        """
        a, b, width = self._design.pes[pe], self._design.pes[other], self._design.mesh_width
        hops = abs(a.cube % width - b.cube % width) + abs(a.cube // width - b.cube // width)
        return a.sip != b.sip, hops, a.pe != b.pe

    def _reserve(self, nbytes: int, name: str, owner: str, pe: PeSite) -> int:
        fit = self.unit_of(pe, "hbm")
        address = fit.alloc(nbytes, owner)
        if address is None:
            raise KernelError(
                f"the HBM slice of {pe.prefix} must have {format_bytes(nbytes)} free for tensor {name!r}, and has "
                f"{format_bytes(fit.free_bytes)} of {format_bytes(fit.size)} (largest hole "
                f"{format_bytes(fit.largest_hole)}); free a tensor or place it on more PEs."
                + _listing(fit)
            )
        return address

    def _release(self, segments: Sequence[TensorSegment]) -> None:
        for segment in segments:
            self.unreserve(segment.pa)


def _listing(fit: FirstFit) -> str:
    """List what is allocated in a slice, the largest blocks first; many small ones are summed up."""
    blocks = sorted(fit.table(), key=lambda block: (-block.nbytes, block.address))
    if not blocks:
        return ""
    rows = [f"  {block.address:#x}  {format_bytes(block.nbytes):>9}  {block.owner}" for block in blocks[:_MOST_LISTED]]
    rest = blocks[_MOST_LISTED:]
    if rest:
        rows.append(f"  and {len(rest)} more, {format_bytes(sum(block.nbytes for block in rest))} together")
    return "\n".join([" Allocated there:", *rows])
