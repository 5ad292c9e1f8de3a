"""Matrix product at the machine's roof: operands are read once, and go from PE to PE.

The roof of a square product is its multiplications at the peak of all matrix units. On the preset `default` 1024^3
takes 1.25 times that, 2048^3 1.07 times, 4096^3 1.03 times. What that takes, in the order of what it gains:

- The PEs of a package stand in a grid, and each tile of A and B comes from HBM once, then from the neighbour in the
  row or column (`PeGrid`). Read by everybody who wants it, a tile would cross the same few wires between cubes 4 times.
- Nothing waits that need not. Tiles are asked for a round ahead, and products go on in the unit's queue while the next
  tiles are received and passed on.
- Tensors lie where they are wanted: K is cut over a cube's slices, so that PEs that begin with different parts of it
  read from different slices; rows of A and columns of B and C are cut over cubes.
- Tiles are as large as fits, so that they are read least; where all operands stay in the scratchpad, small, so that
  little is left to store at the end (`tile_m=auto` asks for what `PeGrid.over` chooses for the machine).

A product of few rows has nothing to hand over: `columns_kernel` (see the bench `gemv`) has it.
"""

from __future__ import annotations

from itertools import islice
from typing import Literal

from kernbench_builtin.benches._grid import BlockSize, PeGrid
from kernbench_builtin.benches._layers import by_columns, in_each_cube, launch_columns
from kernbench_builtin.benches._shared import check_product, read_back, require_positive
from kernbench_builtin.sizes.decorator import sizes_from
from kernbench_core.host import ArrayOrTensor, DeviceTensor, Runtime


def gemm_kernel(a_ptr, b_ptr, c_ptr, N, K, grid, tl):
    """Compute one PE's part of C = A @ B in the steps of a grid."""
    here = grid.site(tl.program_id(0))
    from_east, from_south = Arriving(a_ptr.dtype, here.east, here.west), Arriving(b_ptr.dtype, here.south, here.north)
    acc, running, coming = None, [], grid.steps(here)
    asked = [load_tiles(a_ptr, b_ptr, N, K, later, tl) for later in islice(coming, grid.ahead)]
    for step in grid.steps(here):
        a, b = asked.pop(0)
        a, b = from_east.tile(step.a, a, grid, tl), from_south.tile(step.b, b, grid, tl)
        if a is not None and b is not None:
            acc = tl.dot(a, b, acc, wait=False)
            running.append(acc)
            if len(running) > grid.queued:
                tl.wait(running.pop(0))
        if step.last and acc is not None:
            tl.store(c_ptr + step.a.row * N + step.b.col, acc, strides=(N, 1))
            acc = None
        asked += [load_tiles(a_ptr, b_ptr, N, K, later, tl) for later in islice(coming, 1)]


def load_tiles(a_ptr, b_ptr, N, K, step, tl):
    """Ask for the tiles of a step."""
    return load(step.a, a_ptr, K, tl), load(step.b, b_ptr, N, tl)


def load(tile, ptr, width, tl):
    """Ask for a tile of an operand of so many columns, without waiting; None for one that does not come from HBM."""
    if not tile.load or not tile.size:
        return None
    return tl.load(ptr + tile.row * width + tile.col, shape=tile.shape, strides=(width, 1), wait=False)


class Arriving:
    """The tiles of one operand as they come to a PE: from HBM, from a neighbour, or from the scratchpad once more."""

    def __init__(self, dtype, source, sink):
        self.dtype, self.source, self.sink = dtype, source, sink
        self.kept = {}

    def tile(self, tile, loaded, grid, tl):
        """Return a tile, and pass it on; None for an empty one."""
        if not tile.size:
            return None
        if loaded is None:
            copy = grid.copies
            loaded = self.kept[tile.at] if grid.stays else tl.recv(tile.shape, self.dtype, self.source, copy=copy)
        if tile.passed:
            tl.send(loaded, self.sink, wait=False)
        if grid.stays:
            self.kept[tile.at] = loaded
        return loaded


@sizes_from(a=("M", "K"), b=("K", "N"))
def bench(
    rt: Runtime,
    M: int = 512,
    N: int = 512,
    K: int = 512,
    tile_m: BlockSize = "auto",
    tile_n: BlockSize = "auto",
    tile_k: BlockSize = "auto",
    dtype: Literal["f16", "bf16", "f32", "int8"] = "f16",
    a: ArrayOrTensor | None = None,
    b: ArrayOrTensor | None = None,
) -> DeviceTensor:
    """Multiply an M x K by a K x N matrix, with operands that are read once and go from PE to PE.

    Args:
        M: Rows of A and of the product.
        N: Columns of B and of the product.
        K: Columns of A, rows of B.
        tile_m: Rows of the output in a tile; auto chooses for the machine.
        tile_n: Columns of the output in a tile; auto chooses for the machine.
        tile_k: Terms of the sum in a step; auto chooses for the machine.
        dtype: Of the arrays.
    """
    require_positive(M=M, N=N, K=K, tile_m=tile_m, tile_n=tile_n, tile_k=tile_k)
    tiles, of_c = (tile_m, tile_n, tile_k), "int32" if dtype == "int8" else dtype
    if rt.unit("pe_gemm").get("rows", 1) >= M:
        left = rt.operand(a, (M, K), dtype, name="a", placement=in_each_cube(rt, K, dtype))
        right = rt.operand(b, (K, N), dtype, name="b", placement=by_columns(rt, N))
        out = rt.empty((M, N), of_c, name="c", placement=by_columns(rt, N))
        launch_columns(rt, left, [right], out, tiles)
    else:
        grid = PeGrid.over(rt, M, N, K, dtype, tiles)
        left = rt.operand(a, (M, K), dtype, name="a", placement=grid.placement_of_a(rt))
        right = rt.operand(b, (K, N), dtype, name="b", placement=grid.placement_of_b(rt))
        out = rt.empty((M, N), of_c, name="c", placement=grid.placement_of_c(rt))
        rt.launch(gemm_kernel, left, right, out, N, K, grid)
    read_back(rt, out, a, b)
    check_product(rt, out, left, right)
    return out
