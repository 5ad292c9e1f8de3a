"""Row-wise softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from kernbench_core.runtime import Runtime


def softmax_kernel(x_ptr: Any, y_ptr: Any, rows: int, cols: int, share: int, BLOCK: int, tl: Any) -> None:  # noqa: N803
    """Normalise one PE's rows, BLOCK at a time: exp(x - max) over its sum."""
    first = tl.program_id(0) * share
    last = min(first + share, rows)
    for row in range(first, last, BLOCK):
        count = min(BLOCK, last - row)
        offsets = (row + tl.arange(0, count))[:, None] * cols + tl.arange(0, cols)[None, :]
        x = tl.load(x_ptr + offsets).to(tl.float32)
        e = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
        tl.store(y_ptr + offsets, (e / tl.sum(e, axis=1, keep_dims=True)).to(y_ptr.dtype))


def bench(
    rt: Runtime, rows: int = 512, cols: int = 1024, block: int = 8, dtype: Literal["f32", "f16", "bf16"] = "f16"
) -> None:
    """Compute the softmax of each row of a matrix, rows dealt over the PEs."""
    x = rt.tensor((rows, cols), dtype, name="x")
    y = rt.empty((rows, cols), dtype, name="y")
    rt.launch(softmax_kernel, x, y, rows, cols, -(-rows // rt.n_pes), block)
    rt.copy_to_host(y)

    def reference() -> np.ndarray:
        wide = x.numpy().astype(np.float64)
        e = np.exp(wide - wide.max(axis=1, keepdims=True))
        return (e / e.sum(axis=1, keepdims=True)).astype(x.numpy().dtype)

    rt.check(y, reference)
