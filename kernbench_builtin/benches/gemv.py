"""A vector times a matrix: every PE reads the columns of the matrix that lie in its own slice of HBM.

The roof of y = x @ W is reading W once: 8.3 us for 4096 x 6144 in f16 on the preset `default`, whose slices sustain
6 TB/s together. It takes 1.12 times that. Nothing of W crosses a wire between PEs; W comes in steps that are large
enough to keep a slice busy, and so many ahead that the DMA always has the next one; each PE of a cube begins with
another part of x, so that they do not all read it from one slice. What is left is the first step, the last one, and an
array of 64 columns that works on 96: twice, the second time half empty.

`columns_kernel` of the module `_layers` is the kernel: x may have more rows, as in `qkv-gemm` and `mlp`.
"""

from __future__ import annotations

from typing import Literal

from kernbench_builtin.benches._grid import BlockSize
from kernbench_builtin.benches._layers import activations, by_columns, launch_columns, weights
from kernbench_builtin.benches._shared import check_product, read_back, require_positive
from kernbench_builtin.sizes.decorator import sizes_from
from kernbench_core.host import ArrayOrTensor, DeviceTensor, Runtime


@sizes_from(x=("M", "K"), w=("K", "N"))
def bench(
    rt: Runtime,
    M: int = 1,
    N: int = 6144,
    K: int = 4096,
    tile_n: BlockSize = "auto",
    tile_k: BlockSize = "auto",
    dtype: Literal["f16", "bf16", "f32"] = "f16",
    x: ArrayOrTensor | None = None,
    w: ArrayOrTensor | None = None,
) -> DeviceTensor:
    """Multiply a vector (or a few) by a matrix, each PE its own columns.

    Args:
        M: How many vectors.
        N: Columns of the matrix.
        K: Elements of a vector, rows of the matrix.
        tile_n: Columns of the output in a tile; auto chooses for the machine.
        tile_k: Terms of the sum in a step; auto chooses for the machine.
        dtype: Of the arrays.
    """
    require_positive(M=M, N=N, K=K, tile_n=tile_n, tile_k=tile_k)
    left = activations(rt, M, K, dtype, "x", x)
    right = weights(rt, K, N, dtype, "w", w)
    y = rt.empty((M, N), dtype, name="y", placement=by_columns(rt, N))
    launch_columns(rt, left, [right], y, ("auto", tile_n, tile_k))
    read_back(rt, y, x, w)
    check_product(rt, y, left, right)
    return y
