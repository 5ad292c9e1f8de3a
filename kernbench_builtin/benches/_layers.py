"""Matrix products of layers: weights cut by columns over the PEs, activations once in every cube."""

from __future__ import annotations

import numpy as np

from kernbench_core.host import ArrayOrTensor, DeviceTensor, Runtime
from kernbench_core.memory import Interleave, Placement, Shard
from kernbench_core.values.dtypes import itemsize, numpy_dtype

IN_EACH_CUBE: dict[str, Placement] = {"pe": Interleave(256)}
"""The placement of small vectors that every PE reads: a copy in each cube, dealt over its slices in short runs."""

_GATHERED_BYTES = 256 << 10
"""What a PE copies at a time when it gathers, unless one row is more."""


def columns_kernel(x_ptr, w_ptr, y_ptr, M, N, K, share, activation, BM, BN, BK, tl):
    """Compute one PE's columns of y = x @ w, with an activation if one is named, as one composite."""
    first = tl.program_id(0) * share
    count = min(share, N - first)
    if count <= 0:
        return
    x = tl.ref(x_ptr, shape=(M, K))
    w = tl.ref(w_ptr + first, shape=(K, count), strides=(N, 1))
    y = tl.ref(y_ptr + first, shape=(M, count), strides=(N, 1))
    epilogue = [activation] if activation else []
    tl.composite(op="gemm", a=x, b=w, out=y, epilogue=epilogue, tile_m=BM, tile_n=BN, tile_k=BK)


def gather_kernel(x_ptr, y_ptr, M, N, pes, BLOCK, tl):
    """Copy x to the copy of y in this PE's cube: every `pes`-th row, BLOCK of them at a time."""
    for row in range(tl.program_id(0) % pes, M, pes * BLOCK):
        count = min(BLOCK, -(-(M - row) // pes))
        x = tl.load(x_ptr + row * N, shape=(count, N), strides=(pes * N, 1))
        tl.store(y_ptr + row * N, x, strides=(pes * N, 1))


def by_columns(rt: Runtime, columns: int) -> Placement | None:
    """Return the placement that gives each PE its own columns, or None where they do not divide evenly."""
    return Shard(1) if columns % rt.n_pes == 0 else None


def activations(
    rt: Runtime, rows: int, columns: int, dtype: str, name: str, given: ArrayOrTensor | None = None
) -> DeviceTensor:
    """Place `given`, or random activations of variance 1: a copy in each cube, its rows dealt to the cube's PEs."""
    return rt.operand(given, (rows, columns), dtype, name=name, placement=_in_each_cube(columns, dtype))


def gather(rt: Runtime, x: DeviceTensor, name: str) -> DeviceTensor:
    """Launch the copying of results that lie by columns to every cube, as `activations` lie; return the copies.

    Each cube fetches them once, where each PE of a product would fetch them all.
    """
    rows, columns = x.shape
    y = rt.empty(x.shape, x.dtype, name=name, placement=_in_each_cube(columns, x.dtype))
    block = max(1, _GATHERED_BYTES // (columns * itemsize(x.dtype)))
    rt.launch(gather_kernel, x, y, rows, columns, rt.mesh[2], block)
    return y


def _in_each_cube(columns: int, dtype: str) -> dict[str, Placement]:
    return {"pe": Interleave(columns * itemsize(dtype))}


def weights(rt: Runtime, k: int, n: int, dtype: str, name: str, given: ArrayOrTensor | None = None) -> DeviceTensor:
    """Place `given`, or random weights of variance 1 / k, with which products keep their variance, cut by columns."""
    if given is None and rt.data:
        drawn = rt.rng.standard_normal((k, n), np.float32)
        drawn *= np.float32(k**-0.5)
        given = drawn.astype(numpy_dtype(dtype))
    return rt.operand(given, (k, n), dtype, name=name, placement=by_columns(rt, n))


def launch_columns(
    rt: Runtime, x: DeviceTensor, w: DeviceTensor, y: DeviceTensor, tiles: tuple[int, int, int], activation: str = ""
) -> None:
    """Launch y = x @ w on all PEs; `tiles` are the extents along M, N, K."""
    (m, k), n = x.shape, w.shape[1]
    rt.launch(columns_kernel, x, w, y, m, n, k, -(-n // rt.n_pes), activation, *tiles)
