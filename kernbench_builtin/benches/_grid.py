"""A matrix product on a grid of PEs that hand operands over: who computes what, in which steps and tiles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Literal

from attrs import frozen

from kernbench_builtin.benches._blocks import columns_by_cube, rows_by_cube
from kernbench_builtin.benches._room import halvings, queue_bytes, that_fits
from kernbench_core.host import Runtime
from kernbench_core.memory import Placement, Shard
from kernbench_core.values.dtypes import itemsize

BlockSize = int | Literal["auto"]
Tiles = tuple[BlockSize, BlockSize, BlockSize]
Span = tuple[int, int]
"""First index and how many."""

#: Below so many bytes of operands for each PE, each loads its own: to hand them over takes longer.
_FEW_BYTES = 64 << 10
SUMS = 4
"""Sums in f32 that are there at once: those of the products in the matrix unit's queue, and one being stored."""


def part(span: Span, parts: int, at: int) -> Span:
    """Return one of so many parts of a span that are as equal as can be."""
    first, count = span
    start, end = count * at // parts, count * (at + 1) // parts
    return first + start, end - start


def cut(span: Span, size: int, at: int) -> Span:
    """Return one of the pieces of `size` that a span is cut into; the last is what is left, and others are empty."""
    first, count = span
    return first + at * size, max(0, min(size, count - at * size))


def taken(given: Tiles, chosen: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return sizes that were given, with those chosen for auto."""
    m, n, k = (own if size == "auto" else size for size, own in zip(given, chosen, strict=True))
    return m, n, k


def smaller(given: Tiles) -> str:
    """Say what may be given smaller where no tile fits: those that are not auto."""
    names = [f"-p tile_{name}" for name, size in zip("mnk", given, strict=True) if size != "auto"]
    return f", or a smaller {' or '.join(names)}" if names else ""


def halved(rows: int, cols: int, array: tuple[int, int], most: int) -> tuple[int, int]:
    """Return the tile of at most so many elements that a block is halved to, by its longer side, in whole arrays."""
    while rows * cols > most and (rows > array[0] or cols > array[1]):
        if cols <= array[1] or (rows > array[0] and rows >= cols):
            rows = -(-rows // (2 * array[0])) * array[0]
        else:
            cols = -(-cols // (2 * array[1])) * array[1]
    return max(1, rows), max(1, cols)


def shrunk(rows: int, cols: int) -> Iterator[Span]:
    """Yield the tile, and what it becomes by halving its longer side, down to one element."""
    yield rows, cols
    while rows * cols > 1:
        rows, cols = (-(-rows // 2), cols) if rows >= cols else (rows, -(-cols // 2))
        yield rows, cols


QUEUED_OF_MANY = 6
"""Products in the unit's queue where tiles are small."""


@frozen
class GridTile:
    """A tile of an operand. It comes from HBM (`load`) or from the neighbour, and may be `passed` on."""

    rows: Span
    cols: Span
    load: bool
    passed: bool

    @property
    def row(self) -> int:
        """Its first row."""
        return self.rows[0]

    @property
    def col(self) -> int:
        """Its first column."""
        return self.cols[0]

    @property
    def at(self) -> tuple[int, int]:
        """Its first row and column."""
        return self.row, self.col

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns it has."""
        return self.rows[1], self.cols[1]

    @property
    def size(self) -> int:
        """How many elements it has."""
        return self.rows[1] * self.cols[1]


@frozen
class GridStep:
    """One product of two tiles, A's from the east and B's from the south; `last` is that of a tile of C."""

    a: GridTile
    b: GridTile
    last: bool


@frozen
class GridSite:
    """Where a PE stands: its row and column in its package's grid, its neighbours, and its part of C."""

    row: int
    col: int
    west: int
    east: int
    north: int
    south: int
    rows: Span
    cols: Span


@frozen
class PeGrid:
    """Deal an M x N product over K to `down` x `across` PEs in each package, rows to packages first.

    Where operands are handed over, K is cut into as many parts as the longer side of the grid has PEs. A PE begins with
    another part than its neighbours in its row and its column, and each part goes from PE to PE along both: so each
    tile is read from HBM by one PE, and is where it is wanted one step after another (Cannon's algorithm).
    """

    shape: tuple[int, int, int]
    packages: int
    down: int
    across: int
    hands_over: bool
    cubes: tuple[int, int]
    tile: tuple[int, int, int]
    stays: bool
    copies: bool
    dtype: str

    @classmethod
    def over(cls, rt: Runtime, m: int, n: int, k: int, dtype: str, tile: Tiles) -> PeGrid:
        """Choose the grid that computes soonest, of those the one that moves least, and tiles for auto."""
        packages, cubes, pes = rt.mesh
        width, height = rt.cube_mesh
        unit = rt.unit("pe_gemm")
        high, wide = int(unit.get("rows", 32)), int(unit.get("columns", 64))

        def worth(down: int) -> tuple[int, int, bool, int]:
            across = cubes * pes // down
            rows, cols = -(-m // (packages * down)), -(-n // across)
            loose = down % height > 0 or across % width > 0
            return -(-rows // high) * -(-cols // wide), rows + cols, loose, down

        sides = [side for side in range(1, cubes * pes + 1) if cubes * pes % side == 0]
        even = [side for side in sides if max(side, cubes * pes // side) % min(side, cubes * pes // side) == 0]
        _, _, loose, down = min(map(worth, even))
        across = cubes * pes // down
        block = -(-m // (packages * down)), -(-n // across)
        wants = min(down, across) > 1 and sum(block) * k * itemsize(dtype) > _FEW_BYTES
        slots = rt.unit("pe_ipcq")
        room = slots.get("slot_bytes", 0) if slots.get("tier") == "tcm" else 0
        mesh = (1, 1) if loose else (height, width)

        def grids() -> Iterator[PeGrid]:
            for hands_over in (True, False) if wants else (False,):  # without room for queues, each loads its own
                parts = max(down, across) if hands_over else 1
                for chosen, stays in _tiles(rt, block, k, dtype, (high, wide), parts):
                    sizes = taken(tile, chosen)
                    copies = max(sizes[:2]) * sizes[2] * itemsize(dtype) > room
                    yield cls((m, n, k), packages, down, across, hands_over, mesh, sizes, stays, copies, dtype)

        if "auto" not in tile:
            return next(grids())
        return that_fits(rt, grids(), lambda grid: grid.held(queue_bytes(rt)), smaller(tile))

    def site(self, pe: int) -> GridSite:
        """Return where a PE stands; the cubes of a package stand in the grid as they do in their mesh."""
        (height, width), size = self.cubes, self.down * self.across
        package, left = divmod(pe, size)
        cube, inside = divmod(left, size // (height * width))
        (y, x), (below, beside) = divmod(cube, width), divmod(inside, self.across // width)
        row, col = y * (self.down // height) + below, x * (self.across // width) + beside
        strip, turn = col, self.across // (height * width)
        if turn and self.across % (height * width) == 0:  # B's columns lie in cubes by their numbers
            strip = (beside % height * width + x) * turn + beside // height

        def at(row: int, col: int) -> int:
            (y, below), (x, beside) = divmod(row, self.down // height), divmod(col, self.across // width)
            cube = package * height * width + y * width + x
            return cube * (size // (height * width)) + below * (self.across // width) + beside

        west, east = (at(row, (col + step) % self.across) for step in (-1, 1))
        north, south = (at((row + step) % self.down, col) for step in (-1, 1))
        m, n, _ = self.shape
        rows = part((0, m), self.packages * self.down, package * self.down + row)
        return GridSite(row, col, west, east, north, south, rows, part((0, n), self.across, strip))

    def steps(self, site: GridSite) -> Iterator[GridStep]:
        """Yield the steps of a PE: tile by tile of its part of C, and for each all of K."""
        down, across = (self.down, self.across) if self.hands_over else (1, 1)
        parts = max(down, across)
        by_row, by_col = parts // down, parts // across
        tall, wide = (-(-size // tile) for size, tile in zip(self._block, self.tile, strict=False))
        rounds = math.ceil(math.ceil(self.shape[2] / parts) / self.tile[2])
        start = by_row * site.row + by_col * site.col
        for tile in range(tall * wide):
            m, n = cut(site.rows, self.tile[0], tile // wide), cut(site.cols, self.tile[1], tile % wide)
            for at in range(rounds * parts):
                turn, last = at % parts, at == rounds * parts - 1
                k = part(part((0, self.shape[2]), parts, (start + turn) % parts), rounds, at // parts)
                a = GridTile(m, k, turn < by_col and not (self.stays and tile % wide), turn < parts - by_col)
                b = GridTile(k, n, turn < by_row and not (self.stays and tile >= wide), turn < parts - by_row)
                yield GridStep(a, b, last)

    @property
    def queued(self) -> int:
        """How many products wait in the unit's queue: more where they are short, and room is left for their sums."""
        return QUEUED_OF_MANY if self.stays else SUMS - 2

    @property
    def ahead(self) -> int:
        """How many steps ahead tiles are asked for: a round, or a few where there are no rounds."""
        return max(3, self.down, self.across) if self.hands_over else 3

    def held(self, queue: int) -> int:
        """Return what is in a scratchpad at once, in bytes, where a queue takes so many; of sums two lie in holes."""
        (rows, cols, terms), size = self.tile, itemsize(self.dtype)
        if self.stays:
            return sum(self._block) * self.shape[2] * size + (4 * (self.queued + 4) + size) * rows * cols
        down, across = (self.down, self.across) if self.hands_over else (1, 1)
        parts, steps = max(down, across), self.ahead + self.queued
        tall, wide = (
            rows * (steps // parts * (parts // side) + min(steps % parts, parts // side)) + copied
            for rows, side, copied in ((rows, across, self.copies * rows), (cols, down, self.copies * cols))
        )
        queues = 2 * queue if self.hands_over else 0
        return queues + 4 * (SUMS + 2) * rows * cols + (tall + wide) * terms * size

    def placement_of_a(self, rt: Runtime) -> Mapping[str, Placement] | None:
        """Return where A lies: rows cut over packages and cubes, and K over a cube's PEs."""
        (m, _, k), (packages, cubes, pes) = self.shape, rt.mesh
        if m % (packages * cubes) or k % pes:
            return rows_by_cube(rt, m, k, self.dtype)
        return {"sip": Shard(0), "cube": Shard(0), "pe": Shard(1)}

    def placement_of_b(self, rt: Runtime) -> Mapping[str, Placement]:
        """Return where B lies: a copy in each package, columns cut over its cubes, and K over a cube's PEs."""
        (_, n, k), (_, cubes, pes) = self.shape, rt.mesh
        if n % cubes or k % pes:
            return columns_by_cube(rt, k, n, self.dtype)
        return {"cube": Shard(1), "pe": Shard(0)}

    def placement_of_c(self, rt: Runtime) -> Mapping[str, Placement] | None:
        """Return where C lies: rows cut over packages, columns over their cubes, and rows over a cube's PEs."""
        (m, n, _), (packages, cubes, pes) = self.shape, rt.mesh
        return None if m % (packages * pes) or n % cubes else {"sip": Shard(0), "cube": Shard(1), "pe": Shard(0)}

    @property
    def _block(self) -> tuple[int, int]:
        """The most rows and columns of C that a PE has."""
        m, n, _ = self.shape
        return -(-m // (self.packages * self.down)), -(-n // self.across)


def _tiles(
    rt: Runtime, block: Span, k: int, dtype: str, array: tuple[int, int], parts: int
) -> Iterator[tuple[tuple[int, int, int], bool]]:
    """Yield tiles of a block of C, the best first, and for each whether all its operands stay in the scratchpad.

    Where they are handed over (in more than one part), or do not fit into half of it, a tile is the whole block, halved
    until its sums fit into half of the scratchpad: operands come once for each tile. Where they stay, a tile is a
    sixteenth of the block, as only the last one's store has nothing to hide behind; but never less than a pass of
    the array. A step of a tile takes at least 128 cycles, and as many as its sum takes through the unit's port; what is
    handed over fits into a slot of the queues. The others are smaller, down to a pass, and where each PE loads its own
    down to one element.
    """
    size, room = itemsize(dtype), rt.scratchpad_bytes // 2
    for stays in (True, False) if parts == 1 and sum(block) * k * size <= room else (False,):
        most = room // (4 * (QUEUED_OF_MANY + 2)) if stays else room // (4 * SUMS)
        if stays:
            most = min(most, max(block[0] * block[1] // 16, array[0] * array[1]))
        rows, cols = 0, 0
        for fewer in halvings(most):
            if (rows, cols) != (tile := halved(*block, array, fewer)):
                rows, cols = tile
                yield (rows, cols, _depth(rt, tile, k, size, array, parts)), stays
    if parts == 1:
        for depth in halvings(_depth(rt, (rows, cols), k, size, array, parts)):
            yield (rows, cols, depth), False
        yield from (((*tile, 1), False) for tile in shrunk(rows, cols))


def _depth(rt: Runtime, tile: Span, k: int, size: int, array: tuple[int, int], parts: int) -> int:
    """Return how many terms a step of a tile has."""
    passes, unit = -(-tile[0] // array[0]) * -(-tile[1] // array[1]), rt.unit("pe_gemm")
    port = float(unit.get("operand_bandwidth", math.inf)) / float(unit.get("clock", 1.0))
    depth = max(32, 128 // max(1, passes), math.ceil(4 * array[0] * array[1] / port))
    if parts > 1:
        depth = min(depth, max(1, int(rt.unit("pe_ipcq").get("slot_bytes", 0)) // (max(tile) * size)))
    return min(depth, -(-k // parts))
