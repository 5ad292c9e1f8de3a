"""What benches share: input checks, and numpy references that round like the device does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernbench_core.dtypes import dtype_name, numpy_dtype
from kernbench_core.errors import UsageError

if TYPE_CHECKING:
    from kernbench_core.runtime import DeviceTensor, Runtime

Array = npt.NDArray[Any]


def operand(rt: Runtime, name: str, given: Array | None, shape: tuple[int, ...], dtype: str) -> DeviceTensor:
    """Place `given`, or random numbers when it is None, as tensor `name`; refuse a wrong shape or dtype."""
    if given is None:
        return rt.tensor(shape, dtype, name=name)
    if given.shape != shape:
        raise UsageError(f"parameter {name!r} must be an array of shape {shape}, not {given.shape}; change M, N, K or the file.")
    if dtype_name(given.dtype) != dtype:
        raise UsageError(f"parameter {name!r} must be an array of dtype {dtype}, not {given.dtype}; cast the file or set dtype.")
    return rt.tensor(given, dtype, name=name)


def matmul(a: DeviceTensor, b: DeviceTensor, dtype: str) -> Callable[[], Array]:
    """Return a function that multiplies what `a` and `b` hold in f32 and rounds once to `dtype`."""
    left, right = a.value(), b.value()

    def reference() -> Array:
        wide = np.int32 if dtype.startswith("int") else np.float32
        return (left.array().astype(wide) @ right.array().astype(wide)).astype(numpy_dtype(dtype))

    return reference
