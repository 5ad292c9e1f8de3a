"""Matrix product as one composite command for each PE."""

from __future__ import annotations

from typing import Literal

from kernbench_builtin.benches._shared import check_product, require_positive
from kernbench_core.runtime import Runtime


def composite_kernel(a_ptr, b_ptr, c_ptr, M, N, K, rows, BM, BN, BK, pin_a, tl):
    """Hand one PE's rows of C = A @ B to its scheduler; its rows of A stay in HBM, or are loaded once and pinned."""
    first = tl.program_id(0) * rows
    count = min(rows, M - first)
    if count <= 0:
        return
    a = tl.ref(a_ptr + first * K, shape=(count, K))
    b = tl.ref(b_ptr, shape=(K, N))
    c = tl.ref(c_ptr + first * N, shape=(count, N))
    tl.composite(op="gemm", a=tl.load(a) if pin_a else a, b=b, out=c, tile_m=BM, tile_n=BN, tile_k=BK)


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
) -> None:
    """Multiply an M x K by a K x N matrix as one tiled composite command per PE."""
    require_positive(M=M, N=N, K=K, tile_m=tile_m, tile_n=tile_n, tile_k=tile_k)
    a = rt.tensor((M, K), dtype, name="a")
    b = rt.tensor((K, N), dtype, name="b")
    c = rt.empty((M, N), "int32" if dtype == "int8" else dtype, name="c")
    rows = -(-M // rt.n_pes)
    rt.launch(composite_kernel, a, b, c, M, N, K, rows, tile_m, tile_n, tile_k, pin_a)
    rt.copy_to_host(c)
    check_product(rt, c, a, b)
