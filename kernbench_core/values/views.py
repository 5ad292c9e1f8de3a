"""Values that keep no data of their own: a part of ready data, one element that stands for many, a shape alone."""

from __future__ import annotations

import numpy as np

from kernbench_core.errors import NoDataError
from kernbench_core.values import dtypes
from kernbench_core.values.arrays import Array, Shape
from kernbench_core.values.region import Region, normal
from kernbench_core.values.strided_copies import view_strides
from kernbench_core.values.value import ArrayValue, Part, Value


class FillValue(ArrayValue):
    """One element that stands wherever a masked load moved nothing: its `other`. `ground` repeats it."""

    __slots__ = ()


def poison(dtype: str) -> Array:
    """Return the element that stands for what is read outside of a tensor: NaN, True, or an integer of bytes 0xa5."""
    kind = dtypes.numpy_dtype(dtype)
    if dtypes.is_float(dtype):
        return np.asarray(np.nan, kind)
    return np.asarray(True) if dtype == "bool" else np.frombuffer(b"\xa5" * kind.itemsize, kind).reshape(())


class AbstractValue(Value):
    """A shape and a dtype without data, for runs that keep shapes only; its data is refused."""

    __slots__ = ()

    def array(self) -> Array:
        """Refuse."""
        raise NoDataError(
            f"The data of {self.dtype}{list(self.shape)} is not kept in a run without data; run with data to read it."
        )


def ground(fill: FillValue, nbytes: int) -> Part:
    """Return the part that has one element wherever no later part is painted; it takes the room of one element."""
    return Part(Region(0, nbytes), fill, normal(Region(0, fill.nbytes, nbytes // fill.nbytes)))


def view_of(source: ArrayValue, src: Region, shape: Shape, dtype: str) -> ArrayValue | None:
    """Return the bytes `src` of ready data as a view of `shape` and `dtype`, or None if no stride pattern fits."""
    size = dtypes.itemsize(dtype)
    strides = view_strides(src, shape, size)
    if strides is None:
        return None
    array: Array = np.ndarray(shape, dtypes.numpy_dtype(dtype), source.flat().data, src.base, strides)
    return ArrayValue(array, source, src)
