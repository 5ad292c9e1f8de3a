"""Index arithmetic as Triton has it: int32 wraps, and an operand of 64 bits makes it one of 64."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernbench_core.compute.promotion import meet
from kernbench_core.kernel.bridge import current_language
from kernbench_core.kernel.index import IndexTensor, number_as
from kernbench_core.kernel.tl.tensor import METHODS, METHODS_IN_TRITON
from kernbench_core.values.dtypes import is_int

_LEAST, _BEHIND = -(2**31), 2**31


def _operator(name: str) -> Callable[[WrappingIndex, Any], Any]:
    """Make an operator that first makes its dtype that in which the two operands meet."""
    plain = getattr(IndexTensor, name)
    return lambda self, other: plain(self._meeting(other), other)


class WrappingIndex(IndexTensor):
    """What `arange` leads to in a kernel of Triton's: elements of kind int32 are held in 64 bits, and are in 32.

    `work` is how many operators in a row led to it that are more than sums and products of positions.
    """

    __slots__ = ("work",)
    computed = "int32"
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
        self.work = 0
        if kind == "int32" and not self.bounds_fit(kind):
            if self._strides is not None:
                self._base, self._strides = _wrapped(base), tuple(_wrapped(each) for each in self._strides)
            self._array = self.numpy().astype(np.int32).astype(np.int64)
            self._strides = None

    @classmethod
    def single(cls, element: NDArray[Any], dtype: str) -> Any:
        """Give what an op made of all elements: one, as a scalar of its dtype."""
        return current_language().cast(element.item(), dtype)

    @property
    def numel(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def to(self, dtype: Any, fp_downcast_rounding: str | None = None, bitcast: bool = False) -> Any:
        """Convert the elements, exactly or cut towards zero; keeping the bits is `tl.cast`'s."""
        found = current_language().cast(self, dtype, bitcast=True) if bitcast else super().to(dtype)
        if isinstance(found, WrappingIndex):
            found.work = self.work
        return found

    def offsets(self) -> IndexTensor:
        """The same elements, which a pointer adds in 64 bits."""
        if self._strides is not None:
            return IndexTensor(self.shape, self._base, self._strides, kind=self.kind)
        return IndexTensor(self.shape, array=self._array, kind=self.kind).offsets()

    def _dense(self, op: str, other: Any, swap: bool = False) -> Any:
        found = super()._dense(op, other, swap)
        if isinstance(found, WrappingIndex):
            found.work = 1 + max(self.work, getattr(other, "work", 0))
        return found

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


def _method(name: str) -> Callable[..., Any]:
    def call(self: WrappingIndex, *args: Any, **named: Any) -> Any:
        return getattr(current_language(), name)(self, *args, **named)

    call.__name__, call.__qualname__, call.__doc__ = name, f"WrappingIndex.{name}", f"Give `tl.{name}` of this block."
    return call


for _name in (*METHODS, *METHODS_IN_TRITON, "trans", "view"):
    if not hasattr(IndexTensor, _name):
        setattr(WrappingIndex, _name, _method(_name))


def _wrapped(number: int) -> int:
    return (number - _LEAST) % 2**32 + _LEAST
