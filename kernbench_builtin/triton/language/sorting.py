"""Sorting along the last axis, as a bitonic network of timed commands: a gather, a comparison and a choice a stage."""

from __future__ import annotations

from typing import Any

from kernbench_builtin.triton.language.numbers import NumberLanguage
from kernbench_core.callsite import call_site, describe_site
from kernbench_core.errors import ShapeError
from kernbench_core.kernel.index import IndexTensor


class SortLanguage(NumberLanguage):
    """`sort` and `topk`."""

    def sort(self, x: Any, dim: int | None = None, descending: bool = False) -> Any:
        """Sort along the last axis, whose extent is a power of two; NaN is not ordered."""
        if isinstance(x, IndexTensor):
            x = self._as_tensor(x, x.dtype)
        extent = self._sorted_extent(x, dim, "sort")
        size = 2
        while size <= extent:
            stride = size // 2
            while stride:
                x = self._stage(x, size, stride, bool(descending))
                stride //= 2
            size *= 2
        return x

    def topk(self, x: Any, k: int, dim: int | None = None, descending: bool = True) -> Any:
        """Give the `k` greatest along the last axis, the greatest first; or, not `descending`, the least."""
        extent = self._sorted_extent(x, dim, "topk")
        if not 0 < int(k) <= extent:
            here = f"tl.topk at {describe_site(call_site())}"
            raise ShapeError(f"{here} must be asked for 1 to {extent} elements, not {k}; correct it.")
        found = self.sort(x, dim, descending)
        return self.gather(found, self.arange(0, int(k)).broadcast_to((*found.shape[:-1], int(k))), -1)

    def _sorted_extent(self, x: Any, dim: int | None, op: str) -> int:
        shape = self._tensor(x, op).shape
        axis = self._axis(-1 if dim is None else dim, shape, op)
        here = f"tl.{op} at {describe_site(call_site())}"
        if axis != len(shape) - 1:
            raise ShapeError(f"{here} must be along the last axis, not {dim} of {len(shape)}; use tl.trans first.")
        extent = int(shape[axis])
        if extent & (extent - 1):
            raise ShapeError(f"{here} must be given an extent that is a power of two, not {extent}; pad the tile.")
        return extent

    def _stage(self, x: Any, size: int, stride: int, descending: bool) -> Any:
        """Compare each element with that `stride` away, and keep the less or the greater of the two."""
        at = self.arange(0, x.shape[-1])
        other = self.gather(x, (at ^ stride).broadcast_to(x.shape), -1)
        upward = ((at & size) == 0) != descending
        keeps_less = (upward == ((at & stride) == 0)).broadcast_to(x.shape)
        return self.where((other < x) == keeps_less, other, x)
