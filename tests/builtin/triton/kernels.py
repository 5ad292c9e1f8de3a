"""Kernels written in Triton that several tests launch; called where `triton` is kernbench's."""

from __future__ import annotations

from typing import Any

# mypy: disable-error-code="import-not-found"


def scaling(*wrappers: Any) -> Any:
    """Give a kernel that doubles a vector, block by block, under some wrappers, the outermost first."""
    import triton
    import triton.language as tl

    def scale_kernel(x_ptr: Any, y_ptr: Any, n: Any, BLOCK: tl.constexpr, TWICE: tl.constexpr = 1) -> None:  # noqa: N803 - as kernels are written
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n)
        tl.store(y_ptr + at, x * 2 * TWICE, mask=at < n)

    kernel = triton.jit(scale_kernel)
    for wrap in reversed(wrappers):
        kernel = wrap(kernel)
    return kernel


def walking() -> Any:
    """Give a kernel that adds up, and works on, tiles of a vector."""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x_ptr, out_ptr, n, WORK: tl.constexpr, LOADS: tl.constexpr, BLOCK: tl.constexpr):  # noqa: N803
        at = tl.arange(0, BLOCK)
        total = tl.zeros((BLOCK,), tl.float32)
        x = tl.load(x_ptr + at)
        for i in range(n):
            if LOADS:
                x = tl.load(x_ptr + i * BLOCK + at)
            for _ in tl.static_range(WORK):
                total += x
        tl.store(out_ptr + at, total)

    return kernel
