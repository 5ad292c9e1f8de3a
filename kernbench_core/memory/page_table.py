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


class _Tile:
    """What a virtual region in several places becomes: its pieces in the first copy of each cell, and the cell of each.

    `seen` has what others see of a tensor with copies, by where the `cells` start in the copies that they see.
    """

    __slots__ = ("cells", "first", "of_pieces", "seen")

    def __init__(self, of_pieces: list[int], first: tuple[Region, ...]) -> None:
        self.of_pieces = of_pieces
        self.first = first
        self.cells = tuple(dict.fromkeys(of_pieces))
        self.seen: dict[tuple[int, ...], tuple[Region, ...]] = {}


class Mapping:
    """Where the virtual range `[va, va + nbytes)` of one tensor lies: in cells, as `layout` says.

    `starts` are the physical starts of the cells; with copies, `nearest` chooses one for the PE that asks.
    """

    __slots__ = (
        "_chosen", "_digits", "_held", "_known", "_nearest", "_starts", "_steps", "_unit", "end", "layout", "tensor",
        "va",
    )  # fmt: skip

    def __init__(
        self, va: int, layout: Layout, starts: Sequence[int], tensor: str, nearest: Nearest | None = None
    ) -> None:
        self.va = va
        self.end = va + layout.nbytes
        self.layout = layout
        self.tensor = tensor
        self._starts = tuple(starts)
        self._nearest = nearest
        #: By PE the start of each cell that it has asked for, in the copy that it sees.
        self._chosen: dict[int | None, dict[int, int]] = {}
        # tiles are read again and again, by many PEs: those that see the same copies share what a tile becomes
        self._known: dict[Region, _Tile] = {}
        self._held = 0
        self._unit = layout.digits[-1].extent
        # (bytes the digit is worth, what it adds to the cell, to the bytes inside the cell), as in `Layout.locate`
        self._digits = tuple((d.weight, d.cell, d.local) for d in layout.digits)
        # (bytes the digit is worth, bytes it ranges over, bytes inside the cell), most significant first
        self._steps = tuple((d.weight, d.weight * d.extent, d.local) for d in layout.digits if d.local)

    def holds(self, region: Region) -> bool:
        """Whether all of a virtual region lies inside the mapping."""
        base, span = region.base, (region.rows - 1) * region.pitch
        if span < 0:
            return self.va <= base + span and base + region.row_bytes <= self.end
        return self.va <= base and base + span + region.row_bytes <= self.end

    def translate(self, region: Region, pe: int | None) -> tuple[Region, ...]:
        """Give the physical regions of a virtual one that lies inside the mapping, in the order of its bytes."""
        offset, pitch = region.base - self.va, region.pitch
        if pitch >= 0 and offset % self._unit + (region.rows - 1) * pitch + region.row_bytes <= self._unit:
            cell, local = self._locate(offset)
            return (Region(self._start(cell, pe) + local, region.row_bytes, region.rows, pitch),)
        tile = self._known.get(region)
        if tile is None:
            tile = self._learn(region)
        if self._nearest is None:
            return tile.first
        starts = tuple([self._start(cell, pe) for cell in tile.cells])
        found = tile.seen.get(starts)
        return self._see(tile, starts) if found is None else found

    def _locate(self, offset: int) -> tuple[int, int]:
        """Do what `Layout.locate` does; here, as a look-up is much of what a translation costs."""
        cell = local = 0
        for weight, in_cell, in_local in self._digits:
            count = offset // weight
            offset -= count * weight
            cell += count * in_cell
            local += count * in_local
        return cell, local

    def _start(self, cell: int, pe: int | None) -> int:
        """Give the physical start of a cell, as `pe` sees it."""
        if self._nearest is None:
            return self._starts[cell]
        chosen = self._chosen.setdefault(pe, {})
        start = chosen.get(cell)
        if start is None:
            start = chosen[cell] = self._nearest(pe, cell)
        return start

    def _learn(self, region: Region) -> _Tile:
        """Work out what a region becomes, and keep it."""
        self._make_room()
        tile = self._known[region] = _Tile(*self._pieces(region))
        return tile

    def _see(self, tile: _Tile, starts: tuple[int, ...]) -> tuple[Region, ...]:
        """Give the pieces of a tile where its cells start there, and keep them."""
        self._make_room()
        apart = {cell: start - self._starts[cell] for cell, start in zip(tile.cells, starts, strict=True)}
        found: list[Region] = []
        for cell, piece in zip(tile.of_pieces, tile.first, strict=True):
            found.append(piece.shifted(apart[cell]))
        tile.seen[starts] = tuple(found)
        return tile.seen[starts]

    def _make_room(self) -> None:
        """Forget all translations when there are as many as are kept."""
        if self._held >= MOST_KNOWN:
            self._known.clear()
            self._held = 0
        self._held += 1

    def _pieces(self, region: Region) -> tuple[list[int], tuple[Region, ...]]:
        """Give the cell of each piece, and the pieces in the first copies: rows at one pitch there together."""
        at, width, rows, pitch = region.base - self.va, region.row_bytes, region.rows, region.pitch
        if pitch == width and rows > 1:
            width, rows, pitch = width * rows, 1, 0
        unit, starts = self._unit, self._starts
        reach, last, step = self._stride(width, pitch)
        cells: list[int] = []
        found: list[Region] = []
        while rows > 0:
            if at % unit + width > unit:
                self._run(at, width, cells, found)
                together = 1
            else:
                together = rows if pitch == 0 else 1
                if reach and rows > 1:
                    together = max(1, min(rows, (last - at % reach) // pitch + 1))
                cell, local = self._locate(at)
                cells.append(cell)
                found.append(Region(starts[cell] + local, width, together, step if together > 1 else 0))
            at += together * pitch
            rows -= together
        return cells, tuple(found)

    def _run(self, offset: int, nbytes: int, cells: list[int], found: list[Region]) -> None:
        """Cut a contiguous run at the ends of what lies together, and add its pieces."""
        end = offset + nbytes
        while offset < end:
            piece = min(self._unit - offset % self._unit, end - offset)
            cell, local = self._locate(offset)
            cells.append(cell)
            found.append(Region(self._starts[cell] + local, piece))
            offset += piece

    def _stride(self, width: int, pitch: int) -> tuple[int, int, int]:
        """Give what rows at a pitch stay inside of, the last place of a row in it, and their pitch in the cell.

        All are 0 where no two of them are at one pitch in a cell.
        """
        if pitch > 0:
            for weight, reach, local in self._steps:
                if pitch % weight == 0:
                    # the least significant digit counts bytes, and the whole row must fit
                    return reach, reach - width if weight == 1 else reach - 1, pitch // weight * local
        return 0, 0, 0


class PageTable:
    """Translate virtual regions to physical ones. Mappings need no page alignment: a page may be mapped in parts."""

    __slots__ = ("_last", "_mappings", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._mappings: list[Mapping] = []
        self._last: Mapping | None = None

    def map(self, mapping: Mapping) -> None:
        """Enter a mapping of addresses above all that were mapped so far."""
        self._starts.append(mapping.va)
        self._mappings.append(mapping)

    def unmap(self, va: int) -> None:
        """Remove the mapping that starts at `va`."""
        index = bisect_left(self._starts, va)
        del self._starts[index], self._mappings[index]
        self._last = None

    def find(self, va: int) -> Mapping:
        """Give the mapping that holds the byte at `va`; PageFaultError when there is none."""
        index = bisect_right(self._starts, va) - 1
        if index >= 0 and va < self._mappings[index].end:
            return self._mappings[index]
        raise PageFaultError(self._fault(va, index))

    def translate(self, region: Region, pe: int | None = None) -> tuple[Region, ...]:
        """Give the physical regions whose bytes, one after another, are those of `region`, as PE `pe` sees them."""
        last = self._last
        if last is None or not last.holds(region):
            last = self._last = self.find(region.base)
            if not last.holds(region):
                raise PageFaultError(
                    f"a region from virtual address {region.base:#x} on must lie in tensor {last.tensor!r} as a whole, "
                    "and reaches out of it; correct the access."
                )
        return last.translate(region, pe)

    def _fault(self, va: int, index: int) -> str:
        if index < 0:
            return f"virtual address {va:#x} must be mapped, and no tensor lies at or below it; was the tensor freed?"
        near = self._mappings[index]
        return (
            f"virtual address {va:#x} must be mapped, and is {va - near.end} B past the end of tensor "
            f"{near.tensor!r}; was the tensor that lived there freed?"
        )
