"""Root-mean-square normalisation of rows, as in Llama.

The roof is the vector unit's: an element takes nearly 5.5 cycles of a lane (a cast to f32, a square that two operands
of 6 bytes slow down, sum, scaling and weight), and HBM nearly as long for its 4 bytes in f16. On `default` 8192 tokens
of 4096 take 1.20 of it, 128 take 4.4. What it takes is told in softmax.py.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from kernbench_builtin.benches._grid import BlockSize
from kernbench_builtin.benches._layers import IN_EACH_CUBE
from kernbench_builtin.benches._models import MODELS, ModelName
from kernbench_builtin.benches._shared import read_back, require_positive
from kernbench_builtin.benches._stream import asked_ahead, composite_tile, in_blocks, vector_block
from kernbench_builtin.sizes.decorator import sizes_from
from kernbench_core.host import ArrayOrTensor, DeviceTensor, Runtime
from kernbench_core.values.dtypes import itemsize


def rmsnorm_kernel(x_ptr, w_ptr, y_ptr, rows, cols, share, eps, BLOCK, TILE, tl):
    """Scale one PE's rows, some at a time, to a mean square of 1, and each column by its weight."""
    first = tl.program_id(0) * share
    blocks = in_blocks(first, min(first + share, rows), BLOCK)
    if not blocks:
        return
    before = None

    def ask(block):
        row, count = block
        return tl.load(x_ptr + row * cols, shape=(count, cols), wait=False)

    w = tl.load(w_ptr, shape=(1, cols), wait=False)
    for (row, _), x in asked_ahead(blocks, ask, 2):
        wide = x.to(tl.float32)
        mean_square = tl.sum(x * wide, axis=1, keep_dims=True) * (1 / cols)
        normed = x * tl.rsqrt(mean_square + eps)
        scaled = tl.composite("math", normed, w, y_ptr + row * cols, math_op="mul", tile_m=TILE[0], tile_n=TILE[1])
        if before is not None:
            tl.wait(before)  # so that at most two blocks wait for their stores in the scratchpad
        before = scaled


def rmsnorm(x: npt.NDArray[np.floating], w: npt.NDArray[np.floating], eps: float) -> npt.NDArray[np.floating]:
    """Normalise with numpy in f64, rounded once to the dtype of `x`."""
    wide = x.astype(np.float64)
    scale = 1 / np.sqrt(np.mean(wide * wide, axis=1, keepdims=True) + eps)
    out: npt.NDArray[np.floating] = (wide * scale * w.astype(np.float64)).astype(x.dtype)
    return out


@sizes_from(x=("tokens", "cols"), w=("cols",))
def bench(
    rt: Runtime,
    model: ModelName = "llama3-8b",
    tokens: int = 128,
    cols: int | None = None,
    block: BlockSize = "auto",
    eps: float = 1e-5,
    dtype: Literal["f32", "f16", "bf16"] = "f16",
    x: ArrayOrTensor | None = None,
    w: ArrayOrTensor | None = None,
) -> DeviceTensor:
    """Normalise the rows of (tokens, the model's hidden size or `cols`) by their root mean square.

    Args:
        model: Whose sizes are taken where they are not given.
        tokens: Rows.
        cols: Elements of a row; the model's hidden size by default.
        block: Rows that a PE takes at once; auto takes so many that an op is 24 times as long as its start-up.
        eps: Added to the mean of squares.
        dtype: Of the arrays.
    """
    cols = MODELS[model].hidden if cols is None else cols
    require_positive(tokens=tokens, cols=cols)
    share = -(-tokens // rt.n_pes)
    block = vector_block(rt, itemsize(dtype), cols, share, 1) if block == "auto" else block
    require_positive(block=block)
    given = rt.operand(x, (tokens, cols), dtype, name="x")
    weight = rt.operand(w, (cols,), dtype, name="w", placement=IN_EACH_CUBE)
    y = rt.empty((tokens, cols), dtype, name="y")
    rt.launch(rmsnorm_kernel, given, weight, y, tokens, cols, share, eps, block, composite_tile(rt, cols))
    read_back(rt, y, x, w)
    rows, scale = given.snapshot(), weight.snapshot()
    rt.check(y, lambda: rmsnorm(rows(), scale(), eps))
    return y
