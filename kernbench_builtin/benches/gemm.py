"""Matrix product from loads, dots and stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kernbench_builtin.benches._reference import matmul, operand

if TYPE_CHECKING:
    from kernbench_core.runtime import Runtime


def gemm_kernel(
    a_ptr: Any, b_ptr: Any, c_ptr: Any, M: int, N: int, K: int, rows: int, BM: int, BN: int, BK: int, tl: Any  # noqa: N803
) -> None:
    """Compute one PE's rows of C = A @ B, loading the next pair of tiles while the present one is multiplied."""
    first = tl.program_id(0) * rows
    last = min(first + rows, M)
    for m in range(first, last, BM):
        bm = min(BM, last - m)
        for n in range(0, N, BN):
            bn = min(BN, N - n)
            acc = tl.zeros((bm, bn), tl.int32 if a_ptr.dtype == "int8" else tl.float32)
            ahead = _load(a_ptr, b_ptr, m, n, 0, bm, bn, min(BK, K), N, K, tl)
            for k in range(0, K, BK):
                a, b = ahead
                if k + BK < K:
                    ahead = _load(a_ptr, b_ptr, m, n, k + BK, bm, bn, min(BK, K - k - BK), N, K, tl)
                acc = tl.dot(a, b, acc)
            tl.store(c_ptr + m * N + n, acc.to(c_ptr.dtype), shape=(bm, bn), strides=(N, 1))


def _load(
    a_ptr: Any, b_ptr: Any, m: int, n: int, k: int, bm: int, bn: int, bk: int, N: int, K: int, tl: Any  # noqa: N803
) -> tuple[Any, Any]:
    """Start loading the tiles of A and B at (m, k) and (k, n)."""
    a = tl.load(a_ptr + m * K + k, shape=(bm, bk), strides=(K, 1), wait=False)
    b = tl.load(b_ptr + k * N + n, shape=(bk, bn), strides=(N, 1), wait=False)
    return a, b


def bench(
    rt: Runtime,
    M: int = 512,  # noqa: N803
    N: int = 512,  # noqa: N803
    K: int = 512,  # noqa: N803
    tile_m: int = 128,
    tile_n: int = 128,
    tile_k: int = 128,
    dtype: Literal["f16", "bf16", "f32", "int8"] = "f16",
    a: np.ndarray | None = None,
    b: np.ndarray | None = None,
) -> None:
    """Multiply an M x K by a K x N matrix over all PEs, double-buffered; rows are dealt over the PEs."""
    left = operand(rt, "a", a, (M, K), dtype)
    right = operand(rt, "b", b, (K, N), dtype)
    out_dtype = "int32" if dtype == "int8" else dtype
    c = rt.empty((M, N), out_dtype, name="c")
    rt.launch(gemm_kernel, left, right, c, M, N, K, -(-M // rt.n_pes), tile_m, tile_n, tile_k)
    rt.copy_to_host(c)
    rt.check(c, matmul(left, right, out_dtype))
