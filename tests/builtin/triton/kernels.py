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
