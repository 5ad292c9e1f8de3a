"""The element types of kernbench: names, sizes, numpy types, casts and tolerances.

A dtype is a plain string everywhere (`"f16"`), so that it can stand in a log, in JSON and in a message.
This file is the only place that knows which numpy type stands for which name. `ml_dtypes` is imported
when bf16 or an 8-bit float is first used, not before.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from attrs import frozen

from kernbench_core.errors import StoreError


@frozen
class DTypeInfo:
    """What is fixed about one element type; `rank` orders the types of one kind by how much they hold."""

    name: str
    itemsize: int
    kind: str
    rank: int
    numpy_name: str
    tolerance: float = 0.0
    signed: bool = True


_TABLE = {
    info.name: info
    for info in (
        DTypeInfo("bool", 1, "bool", 0, "bool", signed=False),
        DTypeInfo("int8", 1, "int", 1, "int8"),
        DTypeInfo("int16", 2, "int", 2, "int16"),
        DTypeInfo("int32", 4, "int", 3, "int32"),
        DTypeInfo("int64", 8, "int", 4, "int64"),
        DTypeInfo("uint8", 1, "int", 1, "uint8", signed=False),
        DTypeInfo("uint16", 2, "int", 2, "uint16", signed=False),
        DTypeInfo("uint32", 4, "int", 3, "uint32", signed=False),
        DTypeInfo("f8e4m3", 1, "float", 1, "float8_e4m3fn", 0.125),
        DTypeInfo("f8e5m2", 1, "float", 1, "float8_e5m2", 0.25),
        DTypeInfo("f16", 2, "float", 2, "float16", 1e-3),
        DTypeInfo("bf16", 2, "float", 2, "bfloat16", 1e-2),
        DTypeInfo("f32", 4, "float", 3, "float32", 1e-5),
    )
}
_BY_NUMPY = {info.numpy_name: info.name for info in _TABLE.values()}
NAMES: tuple[str, ...] = tuple(_TABLE)
_ML_DTYPES = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
_WIDENED = ("float16", *_ML_DTYPES)
_SATURATED = {"f8e4m3": 448.0, "f8e5m2": 57344.0}
"""The greatest finite numbers of the 8-bit floats; greater ones become these."""


def info(name: str) -> DTypeInfo:
    """Return what is fixed about dtype `name`; an unknown name is a `StoreError` that lists the known ones."""
    try:
        return _TABLE[name]
    except (KeyError, TypeError):
        raise StoreError(f"A dtype must be one of {', '.join(NAMES)}, not {name!r}; use one of these.") from None


def itemsize(name: str) -> int:
    """Return the bytes of one element."""
    return info(name).itemsize


def tolerance(name: str) -> float:
    """Return the tolerance (rtol = atol) that results of this dtype are compared with; 0 means exactly."""
    return info(name).tolerance


def is_float(name: str) -> bool:
    """Tell whether the dtype is a floating-point one."""
    return info(name).kind == "float"


def is_int(name: str) -> bool:
    """Tell whether the dtype is an integer one (bool is not)."""
    return info(name).kind == "int"


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the numpy dtype that holds elements of dtype `name`."""
    numpy_name = info(name).numpy_name
    if numpy_name in _ML_DTYPES:
        import ml_dtypes  # the only door; numpy knows the names once it is imported

        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, numpy_name))
        return found
    return np.dtype(numpy_name)


def dtype_name(dtype: np.dtype[Any]) -> str:
    """Return the name of a numpy dtype; one that kernbench does not have is a `StoreError`."""
    try:
        return _BY_NUMPY[dtype.name]
    except KeyError:
        raise StoreError(
            f"An array must have one of the dtypes {', '.join(NAMES)}, not {dtype.name!r}; cast it first."
        ) from None


def to_compute(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array in the dtype that arithmetic runs in: narrow floats become f32, others stay as they are."""
    if array.dtype.name in _WIDENED:
        return array.astype(np.float32)
    return array


def _whole(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Cut f64 numbers to int64, modulo 2**64; every step is exact."""
    turn = 2.0**64
    folded = np.fmod(np.where(np.isfinite(numbers), numbers, 0.0), turn)
    folded = np.where(folded >= turn / 2, folded - turn, folded)
    return np.where(folded < -turn / 2, folded + turn, folded).astype(np.int64)


def cast(array: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    """Convert to dtype `name`, rounding once; no warning.

    Integers wrap; floats to integers truncate and wrap (NaN and infinities give 0); 8-bit floats saturate at their
    greatest finite number and keep NaN, as Triton's casts do on hardware that has them.
    """
    target = numpy_dtype(name)
    if array.dtype == target:
        return array
    with np.errstate(all="ignore"):
        if is_int(name) and array.dtype.kind not in "iub":
            return np.asarray(_whole(array.astype(np.float64)).astype(target))
        if name in _SATURATED:
            array = np.clip(array.astype(np.float32), -_SATURATED[name], _SATURATED[name])
        out: np.ndarray[Any, Any] = array.astype(target)
        return out
