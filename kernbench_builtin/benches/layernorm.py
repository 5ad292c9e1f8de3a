"""Layer normalisation of rows, as in GPT-2.

The roof is the vector unit's: an element takes 9 cycles of a lane (a cast to f32, sum, difference, a square that two
operands of 8 bytes slow down to 2, sum, scaling, weight and bias). On `default` 8192 tokens of 4096 take 1.13 of it,
128 of 768 take 9. What it takes is told in softmax.py.
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


def layernorm_kernel(x_ptr, w_ptr, b_ptr, y_ptr, rows, cols, share, eps, BLOCK, TILE, tl):
    """Shift and scale one PE's rows, some at a time, to mean 0 and variance 1, then each column by weight and bias."""
    first = tl.program_id(0) * share
    blocks = in_blocks(first, min(first + share, rows), BLOCK)
    if not blocks:
        return
    before = None

    def ask(block):
        row, count = block
        return tl.load(x_ptr + row * cols, shape=(count, cols), wait=False)

    w, b = (tl.load(ptr, shape=(1, cols), wait=False) for ptr in (w_ptr, b_ptr))
    for (row, _), x in asked_ahead(blocks, ask, 2):
        x = x - tl.sum(x, axis=1, keep_dims=True, dtype=tl.float32) * (1 / cols)
        variance = tl.sum(x * x, axis=1, keep_dims=True) * (1 / cols)
        x = x * tl.rsqrt(variance + eps) * w
        scaled = tl.composite("math", x, b, y_ptr + row * cols, math_op="add", tile_m=TILE[0], tile_n=TILE[1])
        if before is not None:
            tl.wait(before)  # so that at most two blocks wait for their stores in the scratchpad
        before = scaled


def layernorm(
    x: npt.NDArray[np.floating], w: npt.NDArray[np.floating], b: npt.NDArray[np.floating], eps: float
) -> npt.NDArray[np.floating]:
    """Normalise with numpy in f64, rounded once to the dtype of `x`."""
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    scaled = centred / np.sqrt(np.mean(centred * centred, axis=1, keepdims=True) + eps)
    out: npt.NDArray[np.floating] = (scaled * w.astype(np.float64) + b.astype(np.float64)).astype(x.dtype)
    return out


@sizes_from(x=("tokens", "cols"), w=("cols",), b=("cols",))
def bench(
    rt: Runtime,
    model: ModelName = "gpt2",
    tokens: int = 128,
    cols: int | None = None,
    block: BlockSize = "auto",
    eps: float = 1e-5,
    dtype: Literal["f32", "f16", "bf16"] = "f16",
    x: ArrayOrTensor | None = None,
    w: ArrayOrTensor | None = None,
    b: ArrayOrTensor | None = None,
) -> DeviceTensor:
    """Normalise the rows of (tokens, the model's hidden size or `cols`) by their mean and variance.

    Args:
        model: Whose sizes are taken where they are not given.
        tokens: Rows.
        cols: Elements of a row; the model's hidden size by default.
        block: Rows that a PE takes at once; auto takes so many that an op is 24 times as long as its start-up.
        eps: Added to the variance.
        dtype: Of the arrays.
    """
    cols = MODELS[model].hidden if cols is None else cols
    require_positive(tokens=tokens, cols=cols)
    share = -(-tokens // rt.n_pes)
    block = vector_block(rt, itemsize(dtype), cols, share, 2) if block == "auto" else block
    require_positive(block=block)
    given = rt.operand(x, (tokens, cols), dtype, name="x")
    weight = rt.operand(w, (cols,), dtype, name="w", placement=IN_EACH_CUBE)
    bias = rt.operand(b, (cols,), dtype, name="b", placement=IN_EACH_CUBE)
    y = rt.empty((tokens, cols), dtype, name="y")
    rt.launch(layernorm_kernel, given, weight, bias, y, tokens, cols, share, eps, block, composite_tile(rt, cols))
    read_back(rt, y, x, w, b)
    rows, scale, shift = given.snapshot(), weight.snapshot(), bias.snapshot()
    rt.check(y, lambda: layernorm(rows(), scale(), shift(), eps))
    return y
