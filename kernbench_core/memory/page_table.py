"""The page table: one mapping for each tensor, which turns virtual regions into physical ones by arithmetic."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from kernbench_core.errors import PageFaultError
from kernbench_core.memory.placement import Layout
from kernbench_core.values.region import Region

#: Translations that a mapping remembers; a tile of many rows may take 10 KB.
MOST_KNOWN = 1024

Nearest = Callable[[int | None, int], int]
"""Give the physical start of the copy of a cell that a PE (None: the host) reaches soonest: (PE index, cell)."""


class Mapping:
    """Where the virtual range `[va, va + nbytes)` of one tensor lies: in cells, as `layout` says.

    `starts` are the physical starts of the cells; with copies, `nearest` chooses one for the PE that asks.
    """

    __slots__ = ("_chosen", "_known", "_nearest", "_starts", "_steps", "_unit", "end", "layout", "tensor", "va")

    def __init__(
        self, va: int, layout: Layout, starts: Sequence[int], tensor: str, nearest: Nearest | None = None
    ) -> None:
        self.va = va
        self.end = va + layout.nbytes
        self.layout = layout
        self.tensor = tensor
        self._starts = tuple(starts)
        self._nearest = nearest
        self._chosen: dict[tuple[int | None, int], int] = {}
        # tiles are read again and again; what a region in several places becomes depends on the PE only with copies
        self._known: dict[tuple[Region, int | None], tuple[Region, ...]] = {}
        self._unit = layout.digits[-1].extent
        # (bytes the digit is worth, bytes it ranges over, bytes inside the cell), most significant first
        self._steps = tuple((d.weight, d.weight * d.extent, d.local) for d in layout.digits if d.local)

    def translate(self, region: Region, pe: int | None) -> tuple[Region, ...]:
        """Give the physical regions of a virtual one that lies inside the mapping, in the order of its bytes."""
        offset, pitch = region.base - self.va, region.pitch
        if pitch >= 0 and offset % self._unit + (region.rows - 1) * pitch + region.row_bytes <= self._unit:
            return (Region(self._physical(offset, pe), region.row_bytes, region.rows, pitch),)
        key = region, None if self._nearest is None else pe
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            found = self._known[key] = tuple(self._pieces(region, pe))
        return found

    def _pieces(self, region: Region, pe: int | None) -> list[Region]:
        """Translate rows together as far as they lie at one pitch in one cell."""
        offset, width, rows, pitch = region.base - self.va, region.row_bytes, region.rows, region.pitch
        unit = self._unit
        if pitch == width and rows > 1:
            width, rows, pitch = width * rows, 1, 0
        found: list[Region] = []
        row = 0
        while row < rows:
            at = offset + row * pitch
            if at % unit + width > unit:
                found.extend(self._run(at, width, pe))
                row += 1
                continue
            together, step = self._together(at, width, rows - row, pitch)
            found.append(Region(self._physical(at, pe), width, together, step))
            row += together
        return found

    def _physical(self, offset: int, pe: int | None) -> int:
        """Give the physical address of the byte at `offset`, as `pe` sees it."""
        cell, local = self.layout.locate(offset)
        nearest = self._nearest
        if nearest is None:
            return self._starts[cell] + local
        start = self._chosen.get((pe, cell))
        if start is None:
            start = self._chosen[pe, cell] = nearest(pe, cell)
        return start + local

    def _run(self, offset: int, nbytes: int, pe: int | None) -> list[Region]:
        """Cut a contiguous run at the ends of what lies together."""
        found, unit = [], self._unit
        end = offset + nbytes
        while offset < end:
            piece = min(unit - offset % unit, end - offset)
            found.append(Region(self._physical(offset, pe), piece))
            offset += piece
        return found

    def _together(self, offset: int, width: int, rows: int, pitch: int) -> tuple[int, int]:
        """Give how many rows from `offset` on lie at one pitch in one cell, and that pitch there."""
        if rows == 1:
            return 1, 0
        if pitch == 0:
            return rows, 0
        if pitch > 0:
            for weight, reach, local in self._steps:
                if pitch % weight == 0:
                    # the least significant digit counts bytes, and the whole row must fit
                    last = reach - width if weight == 1 else reach - 1
                    fit = (last - offset % reach) // pitch + 1
                    together = min(rows, fit)
                    return (together, pitch // weight * local) if together > 1 else (1, 0)
        return 1, 0


class PageTable:
    """Translate virtual regions to physical ones. Mappings need no page alignment: a page may be mapped in parts."""

    __slots__ = ("_last", "_mappings", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._mappings: list[Mapping] = []
        self._last: Mapping | None = None

    def map(self, mapping: Mapping) -> None:
        """Enter a mapping; one of a range that is mapped already is a ValueError."""
        va, end = mapping.va, mapping.end
        index = bisect_left(self._starts, va)
        overlaps_next = index < len(self._starts) and self._starts[index] < end
        if overlaps_next or (index and self._mappings[index - 1].end > va):
            raise ValueError(f"virtual range {va:#x} of {end - va} B must be free, not mapped already; unmap it first.")
        self._starts.insert(index, va)
        self._mappings.insert(index, mapping)

    def unmap(self, va: int) -> None:
        """Remove the mapping that starts at `va`; an address where none starts is a KeyError."""
        index = bisect_left(self._starts, va)
        if index == len(self._starts) or self._starts[index] != va:
            raise KeyError(va)
        del self._starts[index], self._mappings[index]
        self._last = None

    def find(self, va: int) -> Mapping:
        """Give the mapping that holds the byte at `va`; PageFaultError when there is none."""
        index = bisect_right(self._starts, va) - 1
        if index >= 0 and va < self._mappings[index].end:
            return self._mappings[index]
        raise PageFaultError(self._fault(va, index))

    def translate(self, region: Region, pe: int | None = None) -> Sequence[Region]:
        """Give the physical regions whose bytes, one after another, are those of `region`, as PE `pe` sees them."""
        last = self._last
        if last is None or not (last.va <= region.start and region.end <= last.end):
            last = self._last = self.find(region.base)
            if not (last.va <= region.start and region.end <= last.end):
                return self._split(region, pe)
        return last.translate(region, pe)

    def _split(self, region: Region, pe: int | None) -> list[Region]:
        """Translate row by row, and piece by piece, what several mappings hold."""
        found: list[Region] = []
        for row in range(region.rows):
            base, left = region.base + row * region.pitch, region.row_bytes
            while left:
                mapping = self.find(base)
                piece = min(left, mapping.end - base)
                found.extend(mapping.translate(Region(base, piece), pe))
                base += piece
                left -= piece
        return found

    def _fault(self, va: int, index: int) -> str:
        if index < 0:
            return f"virtual address {va:#x} must be mapped, and no tensor lies at or below it; was the tensor freed?"
        near = self._mappings[index]
        return (
            f"virtual address {va:#x} must be mapped, and is {va - near.end} B past the end of tensor "
            f"{near.tensor!r}; was the tensor that lived there freed?"
        )
