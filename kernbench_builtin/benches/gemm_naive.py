"""Matrix product from loads, dots and stores: the first lesson, and `gemm` the last one."""

from __future__ import annotations

from typing import Literal

from kernbench_builtin.benches._blocks import Blocks, columns_by_cube, rows_by_cube
from kernbench_builtin.benches._shared import check_product, read_back, require_positive
from kernbench_builtin.sizes.decorator import sizes_from
from kernbench_core.host import ArrayOrTensor, DeviceTensor, Runtime


def gemm_kernel(a_ptr, b_ptr, c_ptr, N, K, blocks, BM, BN, BK, tl):
    """Compute one PE's block of C = A @ B; while a pair of tiles is multiplied, the next pair is on its way."""
    row, col, rows, cols = blocks.of(tl.program_id(0))
    for m in range(row, row + rows, BM):
        bm = min(BM, row + rows - m)
        for n in range(col, col + cols, BN):
            bn = min(BN, col + cols - n)
            a = b = acc = None
            for k in range(0, K, BK):
                bk = min(BK, K - k)
                next_a = tl.load(a_ptr + m * K + k, shape=(bm, bk), strides=(K, 1), wait=False)
                next_b = tl.load(b_ptr + k * N + n, shape=(bk, bn), strides=(N, 1), wait=False)
                if k > 0:
                    acc = tl.dot(a, b, acc)
                a, b = next_a, next_b
            tl.store(c_ptr + m * N + n, tl.dot(a, b, acc), strides=(N, 1))


@sizes_from(a=("M", "K"), b=("K", "N"))
def bench(
    rt: Runtime,
    M: int = 512,
    N: int = 512,
    K: int = 512,
    tile_m: int = 128,
    tile_n: int = 128,
    tile_k: int = 128,
    dtype: Literal["f16", "bf16", "f32", "int8"] = "f16",
    a: ArrayOrTensor | None = None,
    b: ArrayOrTensor | None = None,
) -> DeviceTensor:
    """Multiply an M x K by a K x N matrix with double-buffered loads, a block of the result for each PE.

    Args:
        M: Rows of A and of the product.
        N: Columns of B and of the product.
        K: Columns of A, rows of B.
        tile_m: Rows of the output in a tile.
        tile_n: Columns of the output in a tile.
        tile_k: Terms of the sum in a tile.
        dtype: Of the arrays.
    """
    require_positive(M=M, N=N, K=K, tile_m=tile_m, tile_n=tile_n, tile_k=tile_k)
    left = rt.operand(a, (M, K), dtype, name="a", placement=rows_by_cube(rt, M, K, dtype))
    right = rt.operand(b, (K, N), dtype, name="b", placement=columns_by_cube(rt, K, N, dtype))
    out = rt.empty((M, N), "int32" if dtype == "int8" else dtype, name="c")
    rt.launch(gemm_kernel, left, right, out, N, K, Blocks.over(rt, M, N), tile_m, tile_n, tile_k)
    read_back(rt, out, a, b)
    check_product(rt, out, left, right)
    return out
