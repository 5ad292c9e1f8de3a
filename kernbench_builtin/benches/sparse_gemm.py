"""Matrix product that skips the zero blocks of A, by an `if` on a mask loaded from memory."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from kernbench_builtin.benches._shared import check_product, read_back, require_positive
from kernbench_builtin.sizes.decorator import sizes_from
from kernbench_core.errors import UsageError
from kernbench_core.host import ArrayOrTensor, DeviceTensor, Runtime
from kernbench_core.values import Array
from kernbench_core.wording import brief


def sparse_gemm_kernel(a_ptr, b_ptr, c_ptr, mask_ptr, M, N, K, rows, BN, BK, tl):
    """Compute one PE's rows of C = A @ B from those blocks of A whose element of the mask is not 0."""
    pid = tl.program_id(0)
    first = pid * rows
    bm = min(rows, M - first)
    if bm <= 0:
        return
    blocks = -(-K // BK)
    mask = tl.load(mask_ptr + pid * blocks, shape=(blocks,))
    for n in range(0, N, BN):
        bn = min(BN, N - n)
        acc = tl.zeros((bm, bn), tl.float32)
        for block in range(blocks):
            if mask[block]:
                k = block * BK
                bk = min(BK, K - k)
                a = tl.load(a_ptr + first * K + k, shape=(bm, bk), strides=(K, 1), wait=False)
                b = tl.load(b_ptr + k * N + n, shape=(bk, bn), strides=(N, 1), wait=False)
                acc = tl.dot(a, b, acc)
        tl.store(c_ptr + first * N + n, acc, strides=(N, 1))


def block_mask(rng: np.random.Generator, pes: int, blocks: int, density: float) -> npt.NDArray[np.int8]:
    """Return pes x blocks zeros and ones: a share `density` of ones, dealt evenly to the rows, placed at random."""
    mask = np.zeros((pes, blocks), np.int8)
    each, left = divmod(round(density * mask.size), pes)
    for row in range(pes):
        mask[row, rng.permutation(blocks)[: each + (row < left)]] = 1
    return mask


def nonzero_blocks(a: Array, rows: int, columns: int) -> npt.NDArray[np.int8]:
    """Return a one for each block of `rows` x `columns` that has an element other than zero."""
    (m, k), used = a.shape, np.asarray(a != 0)
    padded = np.pad(used, ((0, -m % rows), (0, -k % columns)))
    blocks = np.any(padded.reshape(-1, rows, padded.shape[1] // columns, columns), axis=(1, 3))
    return np.asarray(blocks, np.int8)


@sizes_from(a=("M", "K"), b=("K", "N"))
def bench(
    rt: Runtime,
    M: int = 1024,
    N: int = 1024,
    K: int = 1024,
    density: float = 0.25,
    tile_n: int = 256,
    tile_k: int = 64,
    dtype: Literal["f16", "bf16", "f32"] = "f16",
    a: ArrayOrTensor | None = None,
    b: ArrayOrTensor | None = None,
) -> DeviceTensor:
    """Multiply a block-sparse A by a dense B; each PE skips the zero blocks of its rows.

    Args:
        M: Rows of A and of the product.
        N: Columns of B and of the product.
        K: Columns of A, rows of B.
        density: Part of the blocks of A that are not zero.
        tile_n: Columns of B in a tile.
        tile_k: Columns of a block of A.
        dtype: Of the arrays.
    """
    require_positive(M=M, N=N, K=K, tile_n=tile_n, tile_k=tile_k)
    if not 0 <= density <= 1:
        raise UsageError(f"parameter 'density' must be from 0 to 1, not {brief(density)}; it is a share of blocks.")
    rows = -(-M // rt.n_pes)
    if a is None:
        mask = block_mask(rt.rng, -(-M // rows), -(-K // tile_k), density)
        kept = mask.repeat(rows, axis=0)[:M].repeat(tile_k, axis=1)[:, :K]
        left = rt.tensor(rt.rng.standard_normal((M, K), np.float32) * kept, dtype, name="a")
    else:
        left = rt.operand(a, (M, K), dtype, name="a")
        mask = nonzero_blocks(left.numpy(), rows, tile_k)
    right = rt.operand(b, (K, N), dtype, name="b")
    c = rt.empty((M, N), dtype, name="c")
    rt.launch(sparse_gemm_kernel, left, right, c, rt.tensor(mask, name="mask"), M, N, K, rows, tile_n, tile_k)
    read_back(rt, c, a, b)
    check_product(rt, c, left, right)
    return c
