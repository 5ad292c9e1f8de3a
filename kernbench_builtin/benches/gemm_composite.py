"""Matrix product as one composite command for each PE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from kernbench_builtin.benches._reference import matmul

if TYPE_CHECKING:
    from kernbench_core.runtime import Runtime


def composite_kernel(
    a_ptr: Any, b_ptr: Any, c_ptr: Any, M: int, N: int, K: int, rows: int, tm: int, tn: int, tk: int, pin_a: bool, tl: Any  # noqa: N803
) -> None:
    """Hand one PE's rows of C = A @ B to its scheduler; A is left in HBM, or pinned in the scratchpad."""
    first = tl.program_id(0) * rows
    count = min(rows, M - first)
    if count <= 0:
        return
    a = a_ptr + first * K
    left = tl.load(a, shape=(count, K), strides=(K, 1)) if pin_a else tl.ref(a, shape=(count, K), strides=(K, 1))
    right = tl.ref(b_ptr, shape=(K, N), strides=(N, 1))
    out = tl.ref(c_ptr + first * N, shape=(count, N), strides=(N, 1))
    tl.composite(op="gemm", a=left, b=right, out=out, tile_m=tm, tile_n=tn, tile_k=tk)


def bench(
    rt: Runtime,
    M: int = 512,  # noqa: N803
    N: int = 512,  # noqa: N803
    K: int = 512,  # noqa: N803
    tile_m: int = 128,
    tile_n: int = 128,
    tile_k: int = 128,
    pin_a: bool = False,
    dtype: Literal["f16", "bf16", "f32"] = "f16",
) -> None:
    """Multiply an M x K by a K x N matrix as one tiled composite command per PE."""
    a = rt.tensor((M, K), dtype, name="a")
    b = rt.tensor((K, N), dtype, name="b")
    c = rt.empty((M, N), dtype, name="c")
    rt.launch(composite_kernel, a, b, c, M, N, K, -(-M // rt.n_pes), tile_m, tile_n, tile_k, pin_a)
    rt.copy_to_host(c)
    rt.check(c, matmul(a, b, dtype))
