"""Element-wise sum of two vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from kernbench_core.runtime import Runtime


def add_kernel(x_ptr: Any, y_ptr: Any, z_ptr: Any, n: int, share: int, BLOCK: int, tl: Any) -> None:  # noqa: N803
    """Add the elements of one PE's share, BLOCK at a time; the last block is masked."""
    first = tl.program_id(0) * share
    last = min(first + share, n)
    for start in range(first, last, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < last
        x = tl.load(x_ptr + offsets, mask=mask, other=0)
        y = tl.load(y_ptr + offsets, mask=mask, other=0)
        tl.store(z_ptr + offsets, x + y, mask=mask)


def bench(rt: Runtime, n: int = 262144, block: int = 4096, dtype: Literal["f32", "f16", "bf16"] = "f32") -> None:
    """Add two vectors of n elements, each PE its own share, from its own memory."""
    x = rt.tensor((n,), dtype, name="x")
    y = rt.tensor((n,), dtype, name="y")
    z = rt.empty((n,), dtype, name="z")
    rt.launch(add_kernel, x, y, z, n, -(-n // rt.n_pes), block)
    rt.copy_to_host(z)
    rt.check(z, lambda: (x.numpy().astype("f4") + y.numpy().astype("f4")).astype(x.numpy().dtype))
