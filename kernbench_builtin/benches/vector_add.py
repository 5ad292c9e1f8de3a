"""Element-wise sum of two vectors."""

from __future__ import annotations

from typing import Literal

from kernbench_builtin.benches._shared import require_positive
from kernbench_core.host import Runtime


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


def bench(rt: Runtime, n: int = 262144, block: int = 4096, dtype: Literal["f32", "f16", "bf16"] = "f32") -> None:
    """Add two vectors of n elements, each PE its own share, from its own memory."""
    require_positive(n=n, block=block)
    x = rt.tensor((n,), dtype, name="x")
    y = rt.tensor((n,), dtype, name="y")
    z = rt.empty((n,), dtype, name="z")
    share = -(-n // rt.n_pes)
    rt.launch(add_kernel, x, y, z, n, share, block)
    rt.copy_to_host(z)
    rt.check(z, lambda: x.numpy() + y.numpy())
