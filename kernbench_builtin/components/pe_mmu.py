"""The address translation of a PE: a component, and a utility that pe_dma calls."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from heapq import heapreplace
from typing import ClassVar

from kernbench_core.component import ComponentBase
from kernbench_core.errors import ConfigError
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.memory import DeviceMemory
from kernbench_core.messages import MapUpdateMsg, MsgBase
from kernbench_core.params import Param
from kernbench_core.units import grid_ceil
from kernbench_core.values.region import Region

#: A page: its first physical address, its size in bytes, and the number of the allocation that it lies in (-1: none).
Page = tuple[int, int, int]


#: A block that holds nothing, for memory that no tensor lies in: its start, its end, its number.
NO_BLOCK = (0, 0, -1)


class PeMmu(ComponentBase):
    """Charge the translation of the pages that a transfer touches.

    Models: a TLB of `tlb_entries`, set associative, least recently used out first; a look-up for each page that a \
chunk touches, each page once; a page walk for each page that the TLB does not hold, by one of `walkers`; a page \
whose walk is under way is waited for. What one memory holds of a tensor is contiguous there and has pages of its own: \
large ones where the whole page belongs to it, else system pages. Memory that no tensor lies in has system pages.
    Ignores: A page walk takes a fixed time, whatever memory it reads and whoever else reads it. Look-ups of several \
chunks do not contend for the TLB. Walkers serve chunk after chunk: no walk slips in between those of one before. \
Two views of one tensor share their pages in the TLB.
    Timing: look-up i of a chunk ends at arrival + i x tlb_overhead; a miss then waits for a walker, and for \
walk_time; the chunk is translated when its last look-up and its last walk have ended. A map update takes one look-up \
time for each of its ranges.
    Source: an estimate of a few cycles at 1 GHz for a look-up and of one read of device memory for a walk, unverified.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("tlb_overhead", "time", "2 ns", "Look-up time of one page."),
        Param("tlb_entries", "int", 512, "Pages that the TLB holds.", minimum=1, maximum=65536),
        Param("tlb_ways", "int", 8, "Entries of a set; 0 for one set of all entries.", minimum=0),
        Param("large_page_bytes", "size", "64 KiB", "Size of a large page, if above a system page.", positive=True),
        Param("walk_time", "time", "100 ns", "Time of a page walk.", minimum=0),
        Param("walkers", "int", 4, "Page walks under way at once.", minimum=1, maximum=4096),
    )

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self.hits = 0
        self.misses = 0
        self._tlb_overhead = grid_ceil(self.params["tlb_overhead"])
        self._walk = grid_ceil(self.params["walk_time"])
        self._large: int = self.params["large_page_bytes"]
        entries, ways = self.params["tlb_entries"], self.params["tlb_ways"]
        self._ways: int = ways or entries
        if entries % self._ways:
            raise ConfigError(
                f"{node.id}: tlb_entries must be a multiple of tlb_ways, not {entries} of {ways}; correct one."
            )
        # page -> when its walk ends, the least recently used one first
        self._sets: list[dict[Page, float]] = [{} for _ in range(entries // self._ways)]
        self._number = len(self._sets)
        # of each set the page that was looked up last, and when its walk ends: of chunk after chunk it is the same
        self._latest: list[Page | None] = [None] * self._number
        self._latest_known = [0.0] * self._number
        self._walker_free = [0.0] * self.params["walkers"]
        self._memory: DeviceMemory | None = None
        #: Size of a system page, in bytes; taken from the design at the first look-up where there is one.
        self.page_bytes = 0

    def connect(self) -> None:
        """Find the page table of the machine; a machine made by hand may have none."""
        self._memory = self.fabric.find(DeviceMemory)

    def overhead(self, msg: MsgBase) -> float:
        """Return the time in ns to take in a map update: one look-up for each range; one look-up for anything else."""
        return self._tlb_overhead * (max(1, len(msg.order.regions)) if isinstance(msg, MapUpdateMsg) else 1)

    def emit(self, msg: MsgBase, head: float, tail: float) -> None:
        """Acknowledge a map update; what it unmaps is forgotten."""
        if isinstance(msg, MapUpdateMsg) and msg.order.unmap and not msg.reply and any(self._sets):
            self.forget(sorted([(region.base, region.end) for region in msg.order.regions]))
        ComponentBase.emit(self, msg, head, tail)

    def translation_ns(self, regions: Iterable[Region], at_ns: float | None = None) -> float:
        """Return the time in ns to translate every page that physical `regions` touch, from `at_ns` on (default: now).

        Called by pe_dma once per chunk, for commands and tile tokens alike; the TLB remembers the pages.
        """
        self.served += 1
        began = at = ready = self._time.now if at_ns is None else at_ns
        for page in self.pages(regions):
            at += self._tlb_overhead
            known = self._look_up(page, at)
            if known < at:
                known = at
            if known > ready:
                ready = known
        return ready - began

    def pages(self, regions: Iterable[Region]) -> tuple[Page, ...]:
        """Return the pages of physical `regions`, each once, in the order in which they are touched."""
        small = self.page_bytes
        if not small:
            small = self.page_bytes = self.fabric.page_bytes
        found: dict[Page, None] = {}
        page: Page = (0, 0, -1)
        block = NO_BLOCK
        for region in regions:
            base, row_bytes, rows, pitch = region.base, region.row_bytes, region.rows, region.pitch
            if block[0] <= base < block[1]:
                if rows == 1 and page[0] <= base and base + row_bytes <= page[0] + page[1]:
                    # most rows of a tile lie in the page of the one before
                    continue
            else:
                block = (self._memory.block_at(base) if self._memory is not None else None) or NO_BLOCK
            if rows == 1 or -small <= pitch <= small:
                reach = (rows - 1) * pitch
                page = self._touch(base + min(0, reach), base + max(0, reach) + row_bytes, block, found, page)
                continue
            for row in range(rows):  # its gaps leave pages out
                page = self._touch(base + row * pitch, base + row * pitch + row_bytes, block, found, page)
        return tuple(found)

    def _touch(
        self, start: int, end: int, block: tuple[int, int, int], found: dict[Page, None], page: Page
    ) -> Page:
        """Note the pages of `[start, end)`, large ones where the block holds them whole; return the last, or `page`."""
        large, small = self._large, self.page_bytes
        first, last, number = block
        while start < end:
            base = start // large * large
            size = large
            if large < small or base < first or base + large > last:
                base, size = start // small * small, small
            page = base, size, number
            found[page] = None
            start = base + size
        return page

    def forget(self, ranges: list[tuple[int, int]]) -> int:
        """Forget every page that holds a byte of the physical ranges (start, end); return how many there were.

        The ranges are in order and do not overlap. A walk that is under way is not remembered.
        """
        starts, forgotten = [start for start, _ in ranges], 0
        for entries in self._sets:
            for page in tuple(entries):
                last = bisect_left(starts, page[0] + page[1]) - 1
                if last >= 0 and ranges[last][1] > page[0]:
                    del entries[page]
                    forgotten += 1
        self._latest = [None] * self._number
        return forgotten

    def _look_up(self, page: Page, at: float) -> float:
        """Return when the translation of `page` is known, for a look-up that ends at `at` ns."""
        base, size, _ = page
        number = base // size % self._number
        if self._latest[number] == page:
            self.hits += 1
            return self._latest_known[number]
        entries = self._sets[number]
        since = entries.pop(page, None)
        if since is None:
            self.misses += 1
            if len(entries) >= self._ways:
                del entries[next(iter(entries))]
            known = at
            if self._walk:
                free = self._walker_free[0]
                known = (free if free > at else at) + self._walk
                heapreplace(self._walker_free, known)
        else:
            self.hits += 1
            known = since
        self._latest[number], self._latest_known[number] = page, known
        entries[page] = known
        return known
