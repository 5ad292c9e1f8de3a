"""Functions whose result is of another dtype than in kernbench's own kernels, as Triton widens narrow ones.

Source: triton/language/standard.py (`max`, `min`, `cumsum`, `cumprod`, `_pick_sum_dtype`), core.py (`maximum`,
`minimum`, `clamp`) and math.py (`fma`, `fdiv`, `div_rn`), which make scalars of their numbers first.
"""

from __future__ import annotations

from typing import Any

from kernbench_builtin.triton.language.numbers import NumberLanguage
from kernbench_builtin.triton.scalars import typed
from kernbench_core.kernel.tl.math import NanRule
from kernbench_core.kernel.tl.shapes import kind_of
from kernbench_core.values.dtypes import info


def _of_32_bits(dtype: str) -> str:
    """Give what `max` and `min` return of elements of a dtype: f32 or int32 of narrower ones."""
    found = info(dtype)
    return dtype if found.itemsize >= 4 else "f32" if found.kind == "float" else "int32"


class WideningLanguage(NumberLanguage):
    """`max`, `min`, `cumsum`, `cumprod`, `maximum`, `minimum`, `fma`, `fdiv` and `div_rn` of Triton."""

    def maximum(self, x: Any, y: Any, propagate_nan: NanRule = NanRule.NONE) -> Any:
        """Give the greater, elementwise: a number is a scalar of its own, and bf16 becomes f32."""
        return super().maximum(self._compared(x), self._compared(y), propagate_nan)

    def minimum(self, x: Any, y: Any, propagate_nan: NanRule = NanRule.NONE) -> Any:
        """Give the less, elementwise: a number is a scalar of its own, and bf16 becomes f32."""
        return super().minimum(self._compared(x), self._compared(y), propagate_nan)

    def fma(self, x: Any, y: Any, z: Any) -> Any:
        """Compute x * y + z: a number is a scalar of its own; two commands."""
        return super().fma(*map(typed, (x, y, z)))

    def fdiv(self, x: Any, y: Any, ieee_rounding: bool = False) -> Any:
        """Divide floats, elementwise, rounding to nearest: a number is a scalar of its own."""
        return super().fdiv(typed(x), typed(y), ieee_rounding)

    def div_rn(self, x: Any, y: Any) -> Any:
        """Divide floats, elementwise, rounding to nearest: a number is a scalar of its own."""
        return super().div_rn(typed(x), typed(y))

    def _compared(self, x: Any) -> Any:
        return self.cast(x, "f32") if kind_of(x) == "bf16" else typed(x)

    def _extreme(self, op: str, x: Any, axis: int | None, with_index: bool, keep_dims: bool) -> Any:
        """Widen what is less than 32 bits, which no number loses by; beside indices bf16 alone."""
        found = super()._extreme(op, x, axis, with_index, keep_dims)
        kind = kind_of(x)
        if with_index:
            return (self._widened(found[0], kind, "f32"), found[1]) if kind == "bf16" else found
        return self._widened(found, kind, _of_32_bits(kind))

    def cumsum(self, input: Any, axis: int = 0, reverse: bool = False, dtype: Any = None) -> Any:
        """Add up along `axis`, keeping every sum: of bf16 in f32, of narrow integers in 32 bits."""
        return self.scan("cumsum", self._before_scan(input, dtype), axis, reverse)

    def cumprod(self, input: Any, axis: int = 0, reverse: bool = False) -> Any:
        """Multiply along `axis`, keeping every product: of bf16 in f32."""
        return self.scan("cumprod", self._before_scan(input, None), axis, reverse)

    def _before_scan(self, x: Any, dtype: Any) -> Any:
        if dtype is not None:
            return self.cast(x, dtype)
        return self.cast(x, "f32") if kind_of(x) == "bf16" else x

    def _widened(self, x: Any, kind: str, dtype: str) -> Any:
        return x if kind == dtype else self.cast(x, dtype)
