"""Layer normalisation of rows, as in GPT-2."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from kernbench_builtin.benches._layers import IN_EACH_CUBE
from kernbench_builtin.benches._models import MODELS, ModelName
from kernbench_builtin.benches._shared import read_back, require_positive
from kernbench_core.host import ArrayOrTensor, DeviceTensor, Runtime, sizes_from


def layernorm_kernel(x_ptr, w_ptr, b_ptr, y_ptr, rows, cols, share, eps, BLOCK, tl):
    """Shift and scale one PE's rows, BLOCK at a time, to mean 0 and variance 1, then each column by weight and bias."""
    first = tl.program_id(0) * share
    last = min(first + share, rows)
    if first >= last:
        return
    w = tl.load(w_ptr, shape=(1, cols)).to(tl.float32)
    b = tl.load(b_ptr, shape=(1, cols)).to(tl.float32)
    for row in range(first, last, BLOCK):
        block = min(BLOCK, last - row)
        x = tl.load(x_ptr + row * cols, shape=(block, cols)).to(tl.float32)
        x = x - tl.sum(x, axis=1, keep_dims=True) / cols
        variance = tl.sum(x * x, axis=1, keep_dims=True) / cols
        tl.store(y_ptr + row * cols, x * tl.rsqrt(variance + eps) * w + b)


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
    block: int = 4,
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
        block: Rows that a PE takes at once.
        eps: Added to the variance.
        dtype: Of the arrays.
    """
    cols = MODELS[model].hidden if cols is None else cols
    require_positive(tokens=tokens, cols=cols, block=block)
    given = rt.operand(x, (tokens, cols), dtype, name="x")
    weight = rt.operand(w, (cols,), dtype, name="w", placement=IN_EACH_CUBE)
    bias = rt.operand(b, (cols,), dtype, name="b", placement=IN_EACH_CUBE)
    y = rt.empty((tokens, cols), dtype, name="y")
    share = -(-tokens // rt.n_pes)
    rt.launch(layernorm_kernel, given, weight, bias, y, tokens, cols, share, eps, block)
    read_back(rt, y, x, w, b)
    rows, scale, shift = given.snapshot(), weight.snapshot(), bias.snapshot()
    rt.check(y, lambda: layernorm(rows(), scale(), shift(), eps))
    return y
