"""Row-wise softmax."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from kernbench_builtin.benches._shared import read_back, require_positive
from kernbench_core.host import ArrayOrTensor, DeviceTensor, Runtime, sizes_from


def softmax_kernel(x_ptr, y_ptr, rows, cols, share, BLOCK, tl):
    """Normalise one PE's rows, BLOCK at a time: exp(x - max) over its sum."""
    first = tl.program_id(0) * share
    last = min(first + share, rows)
    columns = tl.arange(0, cols)
    for row in range(first, last, BLOCK):
        offsets = (row + tl.arange(0, BLOCK))[:, None] * cols + columns[None, :]
        mask = offsets < last * cols
        x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
        e = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
        tl.store(y_ptr + offsets, e / tl.sum(e, axis=1, keep_dims=True), mask=mask)


def softmax(x: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Compute the softmax of each row with numpy in f64, rounded once to the dtype of `x`."""
    e = np.exp(x.astype(np.float64) - x.astype(np.float64).max(axis=1, keepdims=True))
    out: npt.NDArray[np.floating] = (e / e.sum(axis=1, keepdims=True)).astype(x.dtype)
    return out


@sizes_from(x=("rows", "cols"))
def bench(
    rt: Runtime,
    rows: int = 512,
    cols: int = 1024,
    block: int = 8,
    dtype: Literal["f32", "f16", "bf16"] = "f16",
    x: ArrayOrTensor | None = None,
) -> DeviceTensor:
    """Compute the softmax of each row of a matrix, rows dealt over the PEs.

    Args:
        rows: Rows of the matrix.
        cols: Elements of a row.
        block: Rows that a PE takes at once.
        dtype: Of the arrays.
    """
    require_positive(rows=rows, cols=cols, block=block)
    given = rt.operand(x, (rows, cols), dtype, name="x")
    y = rt.empty((rows, cols), dtype, name="y")
    share = -(-rows // rt.n_pes)
    rt.launch(softmax_kernel, given, y, rows, cols, share, block)
    read_back(rt, y, x)
    before = given.snapshot()
    rt.check(y, lambda: softmax(before()))
    return y
