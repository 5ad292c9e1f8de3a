"""Row-wise softmax.

The roof is the vector unit's: an element takes 9 cycles of a lane (max 1, difference 1, exp 5, sum 1, scaling 1), the
4 bytes that it moves in f16 half of that time. On `default` 4096 rows of 4096 take 1.13 of it, 512 of 1024 2.6.

What it takes: blocks of rows that are on their way two ahead; no cast of the input, as its difference from an f32
maximum is f32; one quotient a row, by which elements are scaled; and this last step, with the cast of the result and
its store, as a composite, so that the kernel is at the next block meanwhile and nothing waits for memory.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from kernbench_builtin.benches._grid import BlockSize
from kernbench_builtin.benches._shared import read_back, require_positive
from kernbench_builtin.benches._stream import asked_ahead, composite_tile, in_blocks, vector_block
from kernbench_builtin.sizes.decorator import sizes_from
from kernbench_core.host import ArrayOrTensor, DeviceTensor, Runtime
from kernbench_core.values.dtypes import itemsize


def softmax_kernel(x_ptr, y_ptr, rows, cols, share, BLOCK, TILE, tl):
    """Normalise one PE's rows, some at a time: exp(x - max) over its sum."""
    first = tl.program_id(0) * share
    before = None

    def ask(block):
        row, count = block
        return tl.load(x_ptr + row * cols, shape=(count, cols), wait=False)

    for (row, _), x in asked_ahead(in_blocks(first, min(first + share, rows), BLOCK), ask, 2):
        e = tl.exp(x - tl.max(x, axis=1, keep_dims=True).to(tl.float32))
        scale = 1 / tl.sum(e, axis=1, keep_dims=True)
        scaled = tl.composite("math", e, scale, y_ptr + row * cols, math_op="mul", tile_m=TILE[0], tile_n=TILE[1])
        if before is not None:
            tl.wait(before)  # so that at most two blocks wait for their stores in the scratchpad
        before = scaled


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
    block: BlockSize = "auto",
    dtype: Literal["f32", "f16", "bf16"] = "f16",
    x: ArrayOrTensor | None = None,
) -> DeviceTensor:
    """Compute the softmax of each row of a matrix, rows dealt over the PEs.

    Args:
        rows: Rows of the matrix.
        cols: Elements of a row.
        block: Rows that a PE takes at once; auto takes so many that an op is 24 times as long as its start-up.
        dtype: Of the arrays.
    """
    share = -(-rows // rt.n_pes)
    require_positive(rows=rows, cols=cols)
    block = vector_block(rt, itemsize(dtype), cols, share) if block == "auto" else block
    require_positive(block=block)
    given = rt.operand(x, (rows, cols), dtype, name="x")
    y = rt.empty((rows, cols), dtype, name="y")
    rt.launch(softmax_kernel, given, y, rows, cols, share, block, composite_tile(rt, cols))
    read_back(rt, y, x)
    before = given.snapshot()
    rt.check(y, lambda: softmax(before()))
    return y
