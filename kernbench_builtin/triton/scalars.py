"""Numbers of a kernel as Triton has them: typed scalars, and constants of compile time that have a `value`.

A scalar is a Python number with a dtype: it counts, compares and indexes as one, and meets tensors as its dtype does.
Integer arithmetic wraps.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from kernbench_builtin.triton.dtype_names import annotated
from kernbench_builtin.triton.wrapping_index import WrappingIndex
from kernbench_core.compute.promotion import meet
from kernbench_core.errors import ShapeError
from kernbench_core.kernel.bridge import current_language
from kernbench_core.kernel.index import number_as
from kernbench_core.kernel.pointers import PointerType
from kernbench_core.values.dtypes import cast, dtype_of, info, is_float, itemsize, numpy_dtype
from kernbench_core.values.element_types import TYPES, ElementType
from kernbench_core.wording import brief


def _operator(name: str, compute: Callable[[Any, Any], Any], swap: bool = False, dividing: bool = False) -> Any:
    """Make a Python operator of scalars; anything but a number is left to the other side."""

    def method(self: Any, other: Any) -> Any:
        kind = type(other)
        if kind is type(self):
            dtype = info(self.dtype).divided or self.dtype if dividing else self.dtype
        elif kind is int or kind is float or kind is bool or isinstance(other, int | float):
            dtype = meet(self.dtype, _kind_of(other), dividing)
        else:
            return NotImplemented
        a, b = (other, self) if swap else (self, other)
        found = compute(_operand(a, dtype), _operand(b, dtype))
        return scalar(found & 1 if dtype == "bool" else found, dtype)

    method.__name__ = name
    return method


def _comparison(name: str) -> Any:
    """Make a Python comparison of scalars, which gives one of bool."""
    compute = getattr(operator, name)

    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        dtype = meet(self.dtype, _kind_of(other))
        return scalar(compute(_operand(self, dtype), _operand(other, dtype)), "bool")

    method.__name__ = name
    return method


def _operand(number: Any, dtype: str) -> Any:
    """Give a number as an operand of `dtype`; ShapeError for one of Python's that an integer dtype does not hold."""
    own = number.dtype if isinstance(number, TypedNumber) else None
    if is_float(dtype):
        return float(number if own == dtype else scalar(number, dtype))
    if own is None and dtype != "bool":
        least, most = _RANGES[dtype]
        if not least <= number <= most:
            number_as(number, dtype)
    return int(number if own is None or own == dtype else scalar(number, dtype))


def _kind_of(number: Any) -> Any:
    if isinstance(number, TypedNumber):
        return number.dtype
    return bool if isinstance(number, bool) else int if isinstance(number, int) else float


def _floordiv(a: Any, b: Any) -> Any:
    """Divide integers as C does, towards zero; by zero gives 0. Triton has no such division of floats."""
    if isinstance(a, float):
        raise ShapeError("`//` must have integer operands, not floats; use tl.floor(a / b), or cast them first.")
    if b == 0:
        return 0
    found = abs(a) // abs(b)
    return found if (a < 0) == (b < 0) else -found


def _mod(a: Any, b: Any) -> Any:
    """Give the remainder with the sign of the dividend; of integers by zero the dividend."""
    if isinstance(a, float) or isinstance(b, float):
        return math.fmod(a, b) if b and math.isfinite(a) else math.nan
    return a if b == 0 else a - b * _floordiv(a, b)


def _truediv(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)


def _div(name: str, swap: bool = False) -> Any:
    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        met = meet(self.dtype, _kind_of(other), True)
        a, b = (other, self) if swap else (self, other)
        dtype = met if is_float(met) else "f32"
        return scalar(_truediv(_operand(a, dtype), _operand(b, dtype)), dtype)

    method.__name__ = name
    return method


class TypedNumber:
    """What typed numbers have in common; `dtype` is that of the class."""

    dtype: ClassVar[ElementType]
    shape: ClassVar[tuple[int, ...]] = ()
    numel: ClassVar[int] = 1

    @property
    def type(self) -> ElementType:
        """The dtype, as Triton's tensors call it."""
        return self.dtype

    def to(self, dtype: Any, fp_downcast_rounding: str | None = None, bitcast: bool = False) -> Any:
        """Convert to `dtype`; floats to integers are cut towards zero. An integer becomes a pointer to its address."""
        if isinstance(dtype, PointerType):
            language = current_language()
            return language.pointer_at(self, dtype)
        return scalar(self, dtype_of(dtype))

    cast = to

    def __getitem__(self, key: Any) -> Any:
        """`x[None, None]` gives a block of one element."""
        if any(part is not None for part in (key if isinstance(key, tuple) else (key,))):
            raise ShapeError(f"a scalar must be indexed by None only, not by [{brief(key)}]; it has no elements.")
        shape = (1,) * (len(key) if isinstance(key, tuple) else 1)
        if is_float(self.dtype):
            return current_language().full(shape, self.item(), self.dtype)
        return WrappingIndex.of(np.full(shape, int(self.item()), numpy_dtype(self.dtype)), kind=str.__str__(self.dtype))

    def item(self) -> Any:
        """Give the Python number."""
        return float(self) if is_float(self.dtype) else int(self)  # type: ignore[arg-type, call-overload]

    __floordiv__, __rfloordiv__ = (
        _operator("__floordiv__", _floordiv, dividing=True),
        _operator("__rfloordiv__", _floordiv, True, True),
    )
    __mod__, __rmod__ = _operator("__mod__", _mod, dividing=True), _operator("__rmod__", _mod, True, True)
    __add__, __radd__ = _operator("__add__", lambda a, b: a + b), _operator("__radd__", lambda a, b: a + b, True)
    __sub__, __rsub__ = _operator("__sub__", lambda a, b: a - b), _operator("__rsub__", lambda a, b: a - b, True)
    __mul__, __rmul__ = _operator("__mul__", lambda a, b: a * b), _operator("__rmul__", lambda a, b: a * b, True)
    __truediv__, __rtruediv__ = _div("__truediv__"), _div("__rtruediv__", True)
    __lt__, __le__, __gt__, __ge__ = _comparison("lt"), _comparison("le"), _comparison("gt"), _comparison("ge")
    __eq__, __ne__ = _comparison("eq"), _comparison("ne")

    def __neg__(self) -> Any:
        return scalar(-self.item(), self.dtype)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return scalar(abs(self.item()), self.dtype)


class IntScalar(TypedNumber, int):
    """A typed integer."""

    __hash__ = int.__hash__

    __and__, __rand__ = _operator("__and__", lambda a, b: a & b), _operator("__rand__", lambda a, b: a & b, True)
    __or__, __ror__ = _operator("__or__", lambda a, b: a | b), _operator("__ror__", lambda a, b: a | b, True)
    __xor__, __rxor__ = _operator("__xor__", lambda a, b: a ^ b), _operator("__rxor__", lambda a, b: a ^ b, True)
    __lshift__ = _operator("__lshift__", lambda a, b: _shifted(a, b))
    __rlshift__ = _operator("__rlshift__", lambda a, b: _shifted(a, b), True)
    __rshift__ = _operator("__rshift__", lambda a, b: a >> min(max(b, 0), 64))
    __rrshift__ = _operator("__rrshift__", lambda a, b: a >> min(max(b, 0), 64), True)

    def __invert__(self) -> Any:
        return scalar(~int(self), self.dtype)


class BoolScalar(IntScalar):
    """A typed integer of one bit, as a comparison gives it."""

    def item(self) -> bool:
        """Give the Python bool."""
        return bool(self)

    def __invert__(self) -> Any:
        return scalar(not self, "bool")

    def __repr__(self) -> str:
        return repr(bool(self))


class FloatScalar(TypedNumber, float):
    """A typed float."""

    __hash__ = float.__hash__


def _shifted(a: int, b: int) -> int:
    return a << b if 0 <= b < 64 else 0


def _kinds() -> Mapping[str, type]:
    found: dict[str, type] = {"bool": type("Bool", (BoolScalar,), {"dtype": TYPES["bool"]})}
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        if (dtype := TYPES.get(name)) is not None:
            found[name] = type(name.capitalize(), (IntScalar,), {"dtype": dtype})
    for name in ("f16", "bf16", "f32", "f8e4m3", "f8e5m2", "f64"):
        if (dtype := TYPES.get(name)) is not None:
            found[name] = type(name.capitalize(), (FloatScalar,), {"dtype": dtype})
    return MappingProxyType(found)


KINDS: Mapping[str, type] = _kinds()
"""The class of scalars of each dtype."""

_WIDTHS = {name: 8 * itemsize(name) for name, kind in KINDS.items() if issubclass(kind, int)}
_RANGES = {
    name: (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if info(name).signed else (0, (1 << bits) - 1)
    for name, bits in _WIDTHS.items()
}


def scalar(number: Any, dtype: str) -> Any:
    """Give a number as a scalar of `dtype`: integers wrap, floats are rounded, those of 8 bits saturate."""
    if dtype == "bool":
        return KINDS[dtype](bool(number))
    if is_float(dtype):
        value = float(number)
        if dtype == "f32" and -1e38 < value < 1e38:
            return KINDS[dtype](np.float32(value))
        return KINDS[dtype](cast(np.asarray(value), dtype))
    if isinstance(number, float) and not math.isfinite(number):
        number = cast(np.asarray(float(number)), dtype).item()  # as of a tile's element
    whole, bits = int(number), _WIDTHS[dtype]
    if info(dtype).signed:
        half = 1 << (bits - 1)
        if not -half <= whole < half:
            whole = (whole + half) % (1 << bits) - half
    elif whole >> bits:
        whole %= 1 << bits
    return KINDS[dtype](whole)


#: The numbers that f32 holds as normal ones, beside 0.
_LEAST_F32, _MOST_F32 = 2.0**-126, (2 - 2.0**-23) * 2.0**127


def typed(value: Any) -> Any:
    """Give a number of Python's as the scalar that a kernel makes of it, anything else as it is.

    An integer is the first of int32, uint32, int64 and uint64 that holds it; a float is f32, or f64 where that is too
    small or too large for it.
    """
    kind = type(value)
    if kind is int or kind is ConstInt:
        return KINDS["int32"](value) if -(2**31) <= value < 2**31 else _wide(value, "uint32")
    if kind is float or kind is ConstFloat:
        size = abs(value)
        is_f32 = _LEAST_F32 <= size <= _MOST_F32 or size == 0 or not math.isfinite(size)
        return scalar(value, "f32" if is_f32 else "f64")
    return KINDS["bool"](value) if kind is bool else value


def _wide(value: int, unsigned: str = "int64") -> Any:
    if 0 <= value < 2**32:
        return KINDS[unsigned](value)
    if -(2**63) <= value < 2**64:
        return KINDS["int64" if value < 2**63 else "uint64"](value)
    raise ShapeError(f"an integer that a kernel is given must be of 64 bits, not {value}; split it.")


def argument(value: Any, annotation: Any = None) -> Any:
    """Give an argument of a launch as compiled Triton types it: int32 or else int64, f32, a bool of one bit.

    An `annotation` that names a dtype (`tl.int64`, `"fp64"`, `"i64"`) decides where there is one. Tuples are of
    arguments.
    """
    if isinstance(value, tuple):
        return mapped(argument, value)
    kind = type(value)
    if kind is not int and kind is not float and kind is not bool:
        return value
    dtype = annotated(annotation)
    if dtype is not None:
        least, most = _RANGES.get(dtype, (-math.inf, math.inf))
        if dtype in _RANGES and (kind is float or not least <= value <= most):
            raise ShapeError(f"an argument annotated as {dtype} must be one that it holds, not {value}; cast it.")
        return scalar(value, dtype)
    if kind is int:
        return KINDS["int32"](value) if -(2**31) <= value < 2**31 else _wide(value)
    return scalar(value, "bool" if kind is bool else "f32")


def mapped(change: Callable[[Any], Any], values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Change each of the values of a tuple, which stays one with names where it has some."""
    changed = [change(each) for each in values]
    return values._make(changed) if hasattr(values, "_make") else tuple(changed)


def to_memory(value: Any) -> Any:
    """Give a number of Python's that goes to memory as a scalar, which is cast to the pointer's dtype."""
    return value if isinstance(value, bool) else typed(value)


class Constant:
    """What constants of compile time have in common."""

    @property
    def value(self) -> Any:
        """The Python number or text."""
        raise NotImplementedError  # pragma: no cover


def _of_constants(name: str, number: type) -> Any:
    """Make a Python operator of constants, which gives constants; typed numbers do their own arithmetic."""
    compute = getattr(number, name)

    def method(self: Any, other: Any) -> Any:
        if isinstance(other, TypedNumber):
            return NotImplemented
        found = compute(self, other)
        return found if found is NotImplemented else constant(found)

    method.__name__ = name
    return method


class ConstInt(Constant, int):
    """An integer of compile time."""

    @property
    def value(self) -> int:
        """The Python number."""
        return int(self)


class ConstFloat(Constant, float):
    """A float of compile time."""

    @property
    def value(self) -> float:
        """The Python number."""
        return float(self)


def _compared_to_constants(name: str, number: type) -> Any:
    """Make a Python comparison of constants; typed numbers do their own."""
    compute = getattr(number, name)

    def method(self: Any, other: Any) -> Any:
        return NotImplemented if isinstance(other, TypedNumber) else compute(self, other)

    method.__name__ = name
    return method


_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
for _kind, _number in ((ConstInt, int), (ConstFloat, float)):
    for _name in _ARITHMETIC + (("and", "or", "xor", "lshift", "rshift") if _number is int else ()):
        for _spelled in (f"__{_name}__", f"__r{_name}__"):
            setattr(_kind, _spelled, _of_constants(_spelled, _number))
    for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(_kind, f"__{_name}__", _compared_to_constants(f"__{_name}__", _number))
    _kind.__hash__ = _number.__hash__  # type: ignore[method-assign]


class ConstText(Constant, str):
    """A text of compile time."""

    @property
    def value(self) -> str:
        """The Python text."""
        return str(self)


_CONSTANTS: Mapping[type, Callable[[Any], Any]] = {int: ConstInt, float: ConstFloat, str: ConstText}


def constant(value: Any) -> Any:
    """Give a value as one of compile time, with `.value` where a number or text has it."""
    make = _CONSTANTS.get(type(value))
    return value if make is None else make(value)
