"""Arguments of a kernel that is run alone, as `-p` takes them: numbers, files of arrays, and arrays to be made.

What a text is checked to be stays a text, so that a manifest can hold it; `constant_of` gives what the kernel is called
with.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from kernbench_core.host.parameters.bench_param import array_of
from kernbench_core.values.dtypes import NAMES, dtype_name, dtype_of, is_known, numpy_dtype
from kernbench_core.values.element_types import ElementType, as_dtype
from kernbench_core.values.masks import NO_MASK, has_mask

if TYPE_CHECKING:
    from kernbench_core.host.runtime import Runtime
    from kernbench_core.memory.placement import Placements

#: The largest array that a text may ask for: more than a device holds.
_MOST_ELEMENTS = 2**40
_NEW = ("empty", "zeros")
_NOTHING = ("none", "None")


@frozen
class NewArray:
    """An array of the device that is not given but made: of zeros, or `is_empty`, with nothing written yet."""

    dtype: str
    shape: tuple[int, ...]
    is_empty: bool

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The numpy dtype of its elements."""
        return numpy_dtype(self.dtype)


def new_array(text: str) -> NewArray | None:
    """Read `empty:DTYPE:SHAPE` or `zeros:DTYPE:SHAPE`; None for other texts, ValueError with a reason for a bad one."""
    how, *rest = text.split(":")
    if how not in _NEW or not rest:
        return None
    if len(rest) != 2:
        raise ValueError(f"write {how}:DTYPE:SHAPE, as {how}:f32:8,4")
    dtype, extents = rest
    try:
        known = dtype_of(dtype)
    except Exception:
        raise ValueError(f"its dtype is none of {', '.join(NAMES)}") from None
    shape = tuple(int(n) if n.isdecimal() else 0 for n in extents.split(","))
    if not all(shape) or math.prod(shape) > _MOST_ELEMENTS:
        raise ValueError(f"its shape is not one to be made; write {how}:DTYPE:SHAPE, as {how}:f32:8,4")
    return NewArray(known, shape, how == "empty")


def argument(given: object, folder: Path, *, is_constant: bool) -> object:
    """Return the value of an argument in a form that a manifest holds, an array aside.

    Any text is right for a constant of compile time. Raise ValueError, with the reason if there is more to say, for
    what is none.
    """
    if has_mask(given):
        raise ValueError(f"it must be {NO_MASK}")
    if hasattr(given, "item") and getattr(given, "ndim", None) == 0:
        given = given.item()
    if isinstance(given, ElementType):
        return f"tl.{given!r}"
    if isinstance(given, np.ndarray):
        return _checked(given)
    if isinstance(given, Path):
        return _checked(array_of(given, folder))
    if isinstance(given, str):
        return _of_text(str.__str__(given), folder, is_constant)
    if given is None or isinstance(given, bool | int | float):
        return given
    raise ValueError


def _of_text(text: str, folder: Path, is_constant: bool) -> object:
    if text in _NOTHING:
        return None
    if text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    if text.startswith("tl."):
        try:
            as_dtype(text.removeprefix("tl."))
        except Exception:
            raise ValueError(f"tl has the dtypes {', '.join(NAMES)}") from None
        return text
    if text.endswith(".npy"):
        return _checked(array_of(text, folder))
    if new_array(text) is not None or is_constant:
        return text
    raise ValueError


def _checked(array: Any) -> Any:
    """Return an array that can be on the device; pairs of bytes are what a file has of bf16."""
    if array.dtype.str == "|V2":
        array = array.view(numpy_dtype("bf16"))
    if not is_known(array.dtype) or not array.dtype.isnative:
        raise ValueError(f"its dtype is {array.dtype}, none of {', '.join(NAMES)}")
    if not array.size:
        raise ValueError(f"its shape is {array.shape}, and it must hold an element")
    return array


def constant_of(value: object) -> object:
    """Return what a kernel is called with for a value that `argument` gave."""
    if not isinstance(value, str):
        return value
    if value.startswith("tl."):
        return as_dtype(value.removeprefix("tl."))
    return new_array(value) or value


def placed(rt: Runtime, name: str, value: object, placement: Placements | None = None) -> Any:
    """Return the device's tensor for an array, whose content is there already; everything else as it is."""
    if isinstance(value, NewArray):
        if value.is_empty:
            return rt.empty(value.shape, value.dtype, name=name, placement=placement)
        zeros = np.zeros(value.shape, value.numpy_dtype)
        return rt.tensor(zeros, value.dtype, name=name, resident=True, placement=placement)
    if not isinstance(value, np.ndarray):
        return value
    return rt.tensor(value, dtype_name(value.dtype), name=name, resident=True, placement=placement)
