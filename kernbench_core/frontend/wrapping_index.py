"""Index arithmetic as Triton has it: int32 wraps, and an operand of 64 bits makes it one of 64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernbench_core.compute.promotion import meet
from kernbench_core.kernel.index import IndexTensor, number_as
from kernbench_core.values.dtypes import is_int

_LEAST, _BEHIND = -(2**31), 2**31


def _operator(name: str) -> Callable[[WrappingIndex, Any], Any]:
    """Make an operator that first makes its dtype that in which the two operands meet."""
    plain = getattr(IndexTensor, name)
    return lambda self, other: plain(self._meeting(other), other)


class WrappingIndex(IndexTensor):
    """What `arange` leads to in a kernel of Triton's: elements of kind int32 are held in 64 bits, and are in 32."""

    __slots__ = ()
    __hash__ = None

    def __init__(
        self,
        shape: tuple[int, ...],
        base: int = 0,
        strides: tuple[int, ...] | None = None,
        array: Any = None,
        kind: str = "int32",
    ) -> None:
        super().__init__(shape, base, strides, array, kind)
        if kind == "int32" and not self.bounds_fit(kind):
            if self._strides is not None:
                self._base, self._strides = _wrapped(base), tuple(_wrapped(each) for each in self._strides)
            self._array = self.numpy().astype(np.int32).astype(np.int64)
            self._strides = None

    def offsets(self) -> IndexTensor:
        """The same elements, which a pointer adds in 64 bits."""
        if self._strides is not None:
            return IndexTensor(self.shape, self._base, self._strides, kind=self.kind)
        return IndexTensor(self.shape, array=self._array, kind=self.kind)

    def _meeting(self, other: Any) -> WrappingIndex:
        """Convert to the integer dtype in which this meets a number; ShapeError for one that int32 lacks."""
        dtype = getattr(type(other), "dtype", None)
        if not isinstance(dtype, str):
            if self.kind == "int32" and isinstance(other, int) and not _LEAST <= other < _BEHIND:
                number_as(other, self.kind)
            return self
        if dtype == self.kind:
            return self
        wide = meet(self.kind, dtype)
        found: WrappingIndex = self.to(wide) if is_int(wide) else self
        return found

    __add__, __radd__ = _operator("__add__"), _operator("__radd__")
    __sub__, __rsub__ = _operator("__sub__"), _operator("__rsub__")
    __mul__, __rmul__ = _operator("__mul__"), _operator("__rmul__")


def _wrapped(number: int) -> int:
    return (number - _LEAST) % 2**32 + _LEAST
