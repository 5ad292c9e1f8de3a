"""Matrix product as one composite command for each PE: how composites work, not the fastest product.

The roof is that of `gemm`, its multiplications at the peak of all matrix units. On the preset `default` 1024^3 takes
2.03 times that, 2048^3 1.42 times. Each PE reads all that it multiplies from HBM, and nothing is handed on: half of the
bytes come from another cube, each tile as often as PEs want it, and queue at the wires there. A pinned A is waited for
in whole before the first product. `gemm` reads each tile once and takes 1.25 and 1.07 times the roof.
"""

from __future__ import annotations

from typing import Literal

from kernbench_builtin.benches._blocks import Blocks, columns_by_cube, rows_by_cube
from kernbench_builtin.benches._shared import check_product, read_back, require_positive
from kernbench_builtin.sizes.decorator import sizes_from
from kernbench_core.host import ArrayOrTensor, DeviceTensor, Runtime


def composite_kernel(a_ptr, b_ptr, c_ptr, N, K, blocks, BM, BN, BK, pin, tl):
    """Hand one PE's block of C = A @ B to its scheduler; operands in `pin` are loaded once, the others stay in HBM."""
    row, col, bm, bn = blocks.of(tl.program_id(0))
    if bm <= 0 or bn <= 0:
        return
    a = tl.ref(a_ptr + row * K, shape=(bm, K))
    b = tl.ref(b_ptr + col, shape=(K, bn), strides=(N, 1))
    c = tl.ref(c_ptr + row * N + col, shape=(bm, bn), strides=(N, 1))
    a = tl.load(a) if "a" in pin else a
    b = tl.load(b) if "b" in pin else b
    tl.composite(op="gemm", a=a, b=b, out=c, tile_m=BM, tile_n=BN, tile_k=BK)


@sizes_from(a=("M", "K"), b=("K", "N"))
def bench(
    rt: Runtime,
    M: int = 512,
    N: int = 512,
    K: int = 512,
    tile_m: int = 128,
    tile_n: int = 128,
    tile_k: int = 128,
    pin_a: bool = False,
    dtype: Literal["f16", "bf16", "f32", "int8"] = "f16",
    a: ArrayOrTensor | None = None,
    b: ArrayOrTensor | None = None,
) -> DeviceTensor:
    """Multiply an M x K by a K x N matrix as one tiled composite command per PE.

    Args:
        M: Rows of A and of the product.
        N: Columns of B and of the product.
        K: Columns of A, rows of B.
        tile_m: Rows of the output in a tile.
        tile_n: Columns of the output in a tile.
        tile_k: Terms of the sum in a tile.
        pin_a: Load A into the scratchpad once, instead of tile by tile.
        dtype: Of the arrays.
    """
    require_positive(M=M, N=N, K=K, tile_m=tile_m, tile_n=tile_n, tile_k=tile_k)
    left = rt.operand(a, (M, K), dtype, name="a", placement=rows_by_cube(rt, M, K, dtype))
    right = rt.operand(b, (K, N), dtype, name="b", placement=columns_by_cube(rt, K, N, dtype))
    c = rt.empty((M, N), "int32" if dtype == "int8" else dtype, name="c")
    blocks, pin = Blocks.over(rt, M, N), "a" if pin_a else "none"
    rt.launch(composite_kernel, left, right, c, N, K, blocks, tile_m, tile_n, tile_k, pin)
    read_back(rt, c, a, b)
    check_product(rt, c, left, right)
    return c
