"""Root-mean-square normalisation of rows, as in Llama."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from kernbench_builtin.benches._layers import IN_EACH_CUBE
from kernbench_builtin.benches._models import MODELS, ModelName
from kernbench_builtin.benches._shared import read_back, require_positive
from kernbench_core.host import ArrayOrTensor, DeviceTensor, Runtime, sizes_from


def rmsnorm_kernel(x_ptr, w_ptr, y_ptr, rows, cols, share, eps, BLOCK, tl):
    """Scale one PE's rows, BLOCK at a time, to a mean square of 1, and each column by its weight."""
    first = tl.program_id(0) * share
    last = min(first + share, rows)
    if first >= last:
        return
    w = tl.load(w_ptr, shape=(1, cols)).to(tl.float32)
    for row in range(first, last, BLOCK):
        block = min(BLOCK, last - row)
        x = tl.load(x_ptr + row * cols, shape=(block, cols)).to(tl.float32)
        mean_square = tl.sum(x * x, axis=1, keep_dims=True) / cols
        tl.store(y_ptr + row * cols, x * tl.rsqrt(mean_square + eps) * w)


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
    block: int = 4,
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
        block: Rows that a PE takes at once.
        eps: Added to the mean of squares.
        dtype: Of the arrays.
    """
    cols = MODELS[model].hidden if cols is None else cols
    require_positive(tokens=tokens, cols=cols, block=block)
    given = rt.operand(x, (tokens, cols), dtype, name="x")
    weight = rt.operand(w, (cols,), dtype, name="w", placement=IN_EACH_CUBE)
    y = rt.empty((tokens, cols), dtype, name="y")
    share = -(-tokens // rt.n_pes)
    rt.launch(rmsnorm_kernel, given, weight, y, tokens, cols, share, eps, block)
    read_back(rt, y, x, w)
    rows, scale = given.snapshot(), weight.snapshot()
    rt.check(y, lambda: rmsnorm(rows(), scale(), eps))
    return y
