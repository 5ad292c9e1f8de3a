"""Element-wise sum of two vectors."""

from __future__ import annotations

from typing import Literal

from kernbench_builtin.benches._shared import read_back, require_positive
from kernbench_core.host import ArrayOrTensor, DeviceTensor, Runtime, sizes_from


def add_kernel(x_ptr, y_ptr, z_ptr, n, share, BLOCK, tl):
    """Add one PE's share of the elements, BLOCK at a time; the last block is masked."""
    first = tl.program_id(0) * share
    last = min(first + share, n)
    for start in range(first, last, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < last
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        tl.store(z_ptr + offsets, x + y, mask=mask)


@sizes_from(x="n", y="n")
def bench(
    rt: Runtime,
    n: int = 262144,
    block: int = 4096,
    dtype: Literal["f32", "f16", "bf16"] = "f32",
    x: ArrayOrTensor | None = None,
    y: ArrayOrTensor | None = None,
) -> DeviceTensor:
    """Add two vectors of n elements, each PE its own share, from its own memory.

    Args:
        n: Elements of a vector.
        block: Elements that a PE takes at once.
        dtype: Of the arrays.
    """
    require_positive(n=n, block=block)
    given = y if x is None else x
    shape = (n,) if given is None else given.shape
    left = rt.operand(x, shape, dtype, name="x")
    right = rt.operand(y, shape, dtype, name="y")
    z = rt.empty(shape, dtype, name="z")
    share = -(-n // rt.n_pes)
    rt.launch(add_kernel, left, right, z, n, share, block)
    read_back(rt, z, x, y)
    first, second = left.snapshot(), right.snapshot()
    rt.check(z, lambda: first() + second())
    return z
