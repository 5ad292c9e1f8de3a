"""Matrix product that skips the zero blocks of A, by an `if` on a mask loaded from memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from kernbench_builtin.benches._reference import matmul
from kernbench_core.dtypes import numpy_dtype
from kernbench_core.errors import UsageError

if TYPE_CHECKING:
    from kernbench_core.runtime import Runtime


def sparse_gemm_kernel(
    a_ptr: Any, b_ptr: Any, c_ptr: Any, mask_ptr: Any, M: int, N: int, K: int, rows: int, BN: int, BK: int, tl: Any  # noqa: N803
) -> None:
    """Compute one PE's rows of C = A @ B from the blocks of A whose mask is not zero."""
    pid = tl.program_id(0)
    first = pid * rows
    bm = min(rows, M - first)
    if bm <= 0:
        return
    k_blocks = -(-K // BK)
    mask = tl.load(mask_ptr + pid * k_blocks, shape=(k_blocks,), strides=(1,))
    for n in range(0, N, BN):
        bn = min(BN, N - n)
        acc = tl.zeros((bm, bn), tl.float32)
        for block in range(k_blocks):
            if mask[block]:
                k = block * BK
                bk = min(BK, K - k)
                a = tl.load(a_ptr + first * K + k, shape=(bm, bk), strides=(K, 1), wait=False)
                b = tl.load(b_ptr + k * N + n, shape=(bk, bn), strides=(N, 1), wait=False)
                acc = tl.dot(a, b, acc)
        tl.store(c_ptr + first * N + n, acc.to(c_ptr.dtype), shape=(bm, bn), strides=(N, 1))


def block_mask(rng: np.random.Generator, row_blocks: int, k_blocks: int, density: float) -> npt.NDArray[np.int32]:
    """Return a row_blocks x k_blocks mask with round(density * k_blocks) ones in each row, at random places."""
    mask = np.zeros((row_blocks, k_blocks), np.int32)
    ones = round(density * k_blocks)
    for row in mask:
        row[rng.permutation(k_blocks)[:ones]] = 1
    return mask


def bench(
    rt: Runtime,
    M: int = 1024,  # noqa: N803
    N: int = 1024,  # noqa: N803
    K: int = 1024,  # noqa: N803
    density: float = 0.25,
    tile_n: int = 256,
    tile_k: int = 64,
    dtype: Literal["f16", "bf16", "f32"] = "f16",
) -> None:
    """Multiply a block-sparse A by a dense B; each PE skips the zero blocks of its rows."""
    if not 0.0 <= density <= 1.0:
        raise UsageError(f"parameter 'density' must be from 0 to 1, not {density!r}.")
    rows = -(-M // rt.n_pes)
    mask = block_mask(rt.rng, rt.n_pes, -(-K // tile_k), density)
    dense = rt.rng.standard_normal((M, K), np.float32)
    keep = np.repeat(np.repeat(mask, rows, axis=0)[:M], tile_k, axis=1)[:, :K]
    a = rt.tensor((dense * keep).astype(numpy_dtype(dtype)), dtype, name="a")
    b = rt.tensor((K, N), dtype, name="b")
    masks = rt.tensor(mask, "int32", name="mask")
    c = rt.empty((M, N), dtype, name="c")
    rt.launch(sparse_gemm_kernel, a, b, c, masks, M, N, K, rows, tile_n, tile_k)
    rt.copy_to_host(c)
    rt.check(c, matmul(a, b, dtype))
