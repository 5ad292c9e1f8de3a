"""Matrix products of layers: weights cut by columns over the PEs, activations once in every cube."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from attrs import frozen

from kernbench_builtin.benches._grid import SUMS, Span, Tiles, cut, halved, part, shrunk, smaller, taken
from kernbench_builtin.benches._room import halvings, queue_bytes, that_fits
from kernbench_core.host import ArrayOrTensor, DeviceTensor, Runtime
from kernbench_core.memory import Interleave, Placement, Shard
from kernbench_core.values.dtypes import itemsize, numpy_dtype

IN_EACH_CUBE: dict[str, Placement] = {"pe": Interleave(256)}
"""The placement of small vectors that every PE reads: a copy in each cube, dealt over its slices in short runs."""

AHEAD = 3
"""Steps that tiles are loaded ahead."""

GATHERS = 2
"""In how many blocks a PE copies at least when it gathers, so that it stores one while it loads the next."""

EXTRA = 7
"""Results in f32 that are there at once, at most, while a layer's activation is computed."""

LEAST_BYTES = 32 << 10
"""What a PE loads at least for a step: enough to come at full rate."""


@frozen
class ColumnBlocks:
    """Deal y = x @ w to PEs: each `group` of neighbours has the columns that lie in their slices, and splits the rows.

    With M rows and N columns over K; `tile` is the rows, columns and terms of a step.
    """

    shape: tuple[int, int, int]
    pes: int
    slices: int
    group: int
    tile: tuple[int, int, int]

    @classmethod
    def over(
        cls, rt: Runtime, m: int, n: int, k: int, dtype: str, tile: Tiles, weights: int = 1, extra: int = 0
    ) -> ColumnBlocks:
        """Choose the group that computes soonest, of those the one that reads least from afar, and tiles for auto.

        Those are the whole block of a PE, halved until its sums fit into half of the scratchpad, and all that is there
        into the whole, with `extra` results of what finishes a tile; and as many terms as give a 32nd of what it loads,
        from 32 KiB to a 32nd of the scratchpad.
        """
        unit, size = rt.unit("pe_gemm"), itemsize(dtype)
        high, wide = int(unit.get("rows", 32)), int(unit.get("columns", 64))

        def worth(group: int) -> tuple[int, int, int]:
            rows, cols = -(-m // group), -(-n // (rt.n_pes // group))
            return -(-rows // high) * -(-cols // wide), 2 * rows + cols * (group - 1) // group, group

        group = min((group for group in range(1, rt.mesh[2] + 1) if rt.mesh[2] % group == 0), key=worth)
        rows, cols = -(-m // group), -(-n // (rt.n_pes // group))
        most = rt.scratchpad_bytes // 2 // (4 * SUMS * weights)
        sums = max(SUMS * weights, weights + extra) + 2  # room for two lies in holes between others

        def sized(block: Span) -> tuple[int, int, int]:
            of_a_term = size * (block[0] + block[1] * weights)
            most_terms = max(1, rt.scratchpad_bytes // 32 // of_a_term)
            return taken(tile, (*block, min(most_terms, max(-(-k // 32), min(k, LEAST_BYTES // of_a_term)))))

        def held(tile: tuple[int, int, int]) -> int:
            return 4 * sums * tile[0] * tile[1] + (AHEAD + 3) * size * (tile[0] + tile[1] * weights) * tile[2]

        blocks = shrunk(*halved(rows, cols, (high, wide), most))
        chosen = that_fits(rt, map(sized, blocks), held, smaller(tile)) if "auto" in tile else taken(tile, (0, 0, 0))
        return cls((m, n, k), rt.n_pes, rt.mesh[2], group, chosen)

    def steps(self, pe: int) -> Iterator[tuple[Span, Span, Span, bool]]:
        """Yield rows, columns and terms of each step of a PE, and whether it is the last one of its tile.

        Each PE of a cube begins with the terms that lie in its own slice, so that they read from different ones.
        """
        (m, n, k), (block, turn) = self.shape, divmod(pe, self.group)
        rows, cols = part((0, m), self.group, turn), part((0, n), self.pes // self.group, block)
        tall, broad, deep = (-(-count // most) for count, most in zip((rows[1], cols[1], k), self.tile, strict=True))
        for tile in range(tall * broad):
            for at in range(deep):
                terms = part((0, k), deep, (at + pe % self.slices * deep // self.slices) % deep)
                tall_part, broad_part = cut(rows, self.tile[0], tile // broad), cut(cols, self.tile[1], tile % broad)
                yield tall_part, broad_part, terms, at == deep - 1


def columns_kernel(x_ptr, w_ptrs, y_ptr, N, K, deal, finish, tl):
    """Compute one PE's part of y = finish(x @ w for each w), with tiles loaded ahead, and x once for all weights."""
    steps = list(deal.steps(tl.program_id(0)))
    sums, running, coming = [None] * len(w_ptrs), [], iter(steps)
    asked = [load_tiles(x_ptr, w_ptrs, N, K, later, tl) for later in islice(coming, AHEAD)]
    for (row, _), (col, _), _, last in steps:
        x, *weights = asked.pop(0)
        sums = [tl.dot(x, w, acc, wait=False) for w, acc in zip(weights, sums, strict=True)]
        asked += [load_tiles(x_ptr, w_ptrs, N, K, later, tl) for later in islice(coming, 1)]
        running.append(sums)
        if len(running) > 2:
            tl.wait(*running.pop(0))
        if last:
            tl.store(y_ptr + row * N + col, finish(tl, *sums), strides=(N, 1))
            sums = [None] * len(w_ptrs)


def load_tiles(x_ptr, w_ptrs, N, K, step, tl):
    """Ask for a step's tiles of x and of each of the weights, without waiting."""
    (row, rows), (col, cols), (k, terms), _ = step
    x = tl.load(x_ptr + row * K + k, shape=(rows, terms), strides=(K, 1), wait=False)
    return [x, *(tl.load(w + k * N + col, shape=(terms, cols), strides=(N, 1), wait=False) for w in w_ptrs)]


def product_alone(tl, sums):
    """Finish a product: nothing is left to do."""
    return sums


@frozen
class Gathers:
    """The rows that a cube of so many fetches: a part of `rows`, in `count` blocks."""

    rows: int
    cubes: int
    count: int

    def block(self, cube: int, at: int) -> Span:
        """Return one of a cube's blocks."""
        return part(part((0, self.rows), self.cubes, cube), self.count, at)


def gather_kernel(x_ptr, y_ptr, gathers, N, cubes, pes, tl):
    """Copy x to the copies of y in all cubes: this PE fills its own slice, with the columns that lie there.

    Of these it loads some rows and sends them to the PEs of its place in the package's other cubes, which do as much
    for it: so each package fetches x once.
    """
    cube, place = divmod(tl.program_id(0), pes)
    here, package = cube % cubes, cube - cube % cubes
    col, cols = part((0, N), pes, place)
    blocks = [gathers.block(here, at) for at in range(gathers.count)]
    loaded = [load_rows(x_ptr, block, col, cols, N, tl) for block in blocks[:GATHERS]]
    for at in range(gathers.count):
        for step in range(cubes):
            sender, receiver = ((package + (here + way * step) % cubes) * pes + place for way in (-1, 1))
            (row, rows), tile = gathers.block(sender // pes % cubes, at), loaded[at]
            if step and tile is not None:
                tl.send(tile, receiver, wait=False)
            if step and rows and cols:
                tile = tl.recv((rows, cols), x_ptr.dtype, sender)
            if rows and cols:
                tl.store(y_ptr + row * N + col, tile, strides=(N, 1))
        if gathers.count > GATHERS:  # else there is room for all of them
            loaded[at] = tile = None
            loaded += [load_rows(x_ptr, block, col, cols, N, tl) for block in blocks[at + GATHERS : at + GATHERS + 1]]


def load_rows(ptr, block, col, cols, N, tl):
    """Ask for some columns of a block of rows, without waiting; None for none."""
    row, rows = block
    return tl.load(ptr + row * N + col, shape=(rows, cols), strides=(N, 1), wait=False) if rows and cols else None


def by_columns(rt: Runtime, columns: int) -> Placement | None:
    """Return the placement that gives each PE its own columns, or None where they do not divide evenly."""
    return Shard(1) if columns % rt.n_pes == 0 else None


def activations(
    rt: Runtime, rows: int, columns: int, dtype: str, name: str, given: ArrayOrTensor | None = None
) -> DeviceTensor:
    """Place `given`, or random activations of variance 1: a copy in each cube, its columns cut over the cube's PEs."""
    return rt.operand(given, (rows, columns), dtype, name=name, placement=in_each_cube(rt, columns, dtype))


def gather(rt: Runtime, x: DeviceTensor, name: str) -> DeviceTensor:
    """Launch the copying of results that lie by columns to every cube, as `activations` lie; return the copies.

    Each cube fetches them once, where each PE of a product would fetch them all.
    """
    rows, columns = x.shape
    y = rt.empty(x.shape, x.dtype, name=name, placement=in_each_cube(rt, columns, x.dtype))
    _, cubes, pes = rt.mesh
    share = -(-rows // cubes)

    def held(gathers: Gathers) -> int:
        block = -(-share // gathers.count) * -(-columns // pes) * itemsize(x.dtype)
        came = block + queue_bytes(rt) * (cubes - 1) if cubes > 1 else 0
        return min(gathers.count, GATHERS + 1) * block + came

    counts = (GATHERS, *(-(-share // most) for most in halvings(max(1, -(-share // GATHERS)))))
    gathers = that_fits(rt, (Gathers(rows, cubes, count) for count in counts), held)
    rt.launch(gather_kernel, x, y, gathers, columns, cubes, pes)
    return y


def in_each_cube(rt: Runtime, columns: int, dtype: str) -> dict[str, Placement]:
    """Return the placement with a copy in each cube, its columns cut over the PEs, or rows dealt where they do not."""
    return {"pe": Interleave(columns * itemsize(dtype)) if columns % rt.mesh[2] else Shard(1)}


def weights(rt: Runtime, k: int, n: int, dtype: str, name: str, given: ArrayOrTensor | None = None) -> DeviceTensor:
    """Place `given`, or random weights of variance 1 / k, with which products keep their variance, cut by columns."""
    if given is None and rt.data:
        drawn = rt.rng.standard_normal((k, n), np.float32)
        drawn *= np.float32(k**-0.5)
        given = drawn.astype(numpy_dtype(dtype))
    return rt.operand(given, (k, n), dtype, name=name, placement=by_columns(rt, n))


def launch_columns(
    rt: Runtime,
    x: DeviceTensor,
    w: Sequence[DeviceTensor],
    y: DeviceTensor,
    tile: Tiles,
    finish: Callable[..., Any] = product_alone,
) -> None:
    """Launch y = finish(x @ w for each of some weights) on all PEs; `tile` are the extents along M, N, K."""
    (m, k), n = x.shape, y.shape[1]
    extra = 0 if finish is product_alone else EXTRA
    deal = ColumnBlocks.over(rt, m, n, k, x.dtype, tile, len(w), extra)
    rt.launch(columns_kernel, x, list(w), y, n, k, deal, finish)
