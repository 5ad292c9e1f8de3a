"""The element types of kernbench: one record each, and casts.

A dtype is a plain string everywhere (`"f16"`), so that it can stand in a log, in JSON and in a message. All that is
known of one stands in its record here, and whoever needs a table by dtype derives it: a dtype is added by adding a
record. `ml_dtypes` is imported when a type of it is first used, not before.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from attrs import frozen

from kernbench_core.errors import StoreError, UnsupportedError
from kernbench_core.values.halves import as_f16, as_f32
from kernbench_core.wording import brief


@frozen(kw_only=True)
class DTypeInfo:
    """What is fixed about one element type.

    Sizes are bytes. Of two types of one kind that meet in an op, the one of the higher `rank` decides what they become;
    see `compute.promotion`, which reads `beside`, `divided` and `meets_integers`.
    """

    name: str
    kind: str
    """`bool`, `int` or `float`."""
    itemsize: int
    rank: int
    numpy_name: str
    triton: str
    """Its name in `tl` and in Triton."""
    aliases: tuple[str, ...] = ()
    """More names that kernels may give as text."""
    library: str = "numpy"
    """The package that has the numpy type: numpy itself, or ml_dtypes."""
    signed: bool = True
    tolerance: float = 0.0
    """What results are compared with (rtol = atol); 0 means exactly."""
    digits: int = 0
    """Binary digits of a float's significand, the hidden one too: every integer up to 2 ** digits is a number of it."""
    least: float = 0.0
    """The least number of a float above 0."""
    greatest: float | None = None
    """Where casts stop, of a float that has no infinity or would reach it soon; None where they go on to infinity."""
    beside: str = ""
    """What it becomes beside another type that does not decide; empty for itself."""
    divided: str = ""
    """What it becomes in `/`, `//` and `%`; empty for what it is elsewhere."""
    meets_integers: bool = True
    """Whether it may meet an integer or bool without a cast."""


DTYPES: Final[Mapping[str, DTypeInfo]] = MappingProxyType(
    {
        record.name: record
        for record in (
            DTypeInfo(
                name="bool", kind="bool", itemsize=1, rank=0, signed=False, numpy_name="bool", triton="int1",
                aliases=("i1",),
            ),
            DTypeInfo(name="int8", kind="int", itemsize=1, rank=1, numpy_name="int8", triton="int8", aliases=("i8",)),
            DTypeInfo(
                name="int16", kind="int", itemsize=2, rank=2, numpy_name="int16", triton="int16", aliases=("i16",)
            ),
            DTypeInfo(
                name="int32", kind="int", itemsize=4, rank=3, numpy_name="int32", triton="int32", aliases=("i32",)
            ),
            DTypeInfo(
                name="int64", kind="int", itemsize=8, rank=4, numpy_name="int64", triton="int64", aliases=("i64",)
            ),
            DTypeInfo(
                name="uint8", kind="int", itemsize=1, rank=1, signed=False, numpy_name="uint8", triton="uint8",
                aliases=("u8",),
            ),
            DTypeInfo(
                name="uint16", kind="int", itemsize=2, rank=2, signed=False, numpy_name="uint16", triton="uint16",
                aliases=("u16",),
            ),
            DTypeInfo(
                name="uint32", kind="int", itemsize=4, rank=3, signed=False, numpy_name="uint32", triton="uint32",
                aliases=("u32",),
            ),
            DTypeInfo(
                name="uint64", kind="int", itemsize=8, rank=4, signed=False, numpy_name="uint64", triton="uint64",
                aliases=("u64",),
            ),
            DTypeInfo(
                name="f8e4m3", kind="float", itemsize=1, rank=1, numpy_name="float8_e4m3fn", library="ml_dtypes",
                triton="float8e4nv", aliases=("fp8e4nv",), tolerance=0.125, digits=4, least=2.0**-9, greatest=448.0,
                beside="f16", meets_integers=False,
            ),
            DTypeInfo(
                name="f8e5m2", kind="float", itemsize=1, rank=1, numpy_name="float8_e5m2", library="ml_dtypes",
                triton="float8e5", aliases=("fp8e5",), tolerance=0.25, digits=3, least=2.0**-16, greatest=57344.0,
                beside="f16", meets_integers=False,
            ),
            DTypeInfo(
                name="f16", kind="float", itemsize=2, rank=3, numpy_name="float16", triton="float16",
                aliases=("fp16",), tolerance=1e-3, digits=11, least=2.0**-24, divided="f32",
            ),
            DTypeInfo(
                name="bf16", kind="float", itemsize=2, rank=2, numpy_name="bfloat16", library="ml_dtypes",
                triton="bfloat16", tolerance=1e-2, digits=8, least=2.0**-133, beside="f32", divided="f32",
            ),
            DTypeInfo(
                name="f32", kind="float", itemsize=4, rank=4, numpy_name="float32", triton="float32",
                aliases=("fp32",), tolerance=1e-5, digits=24, least=2.0**-149,
            ),
            DTypeInfo(
                name="f64", kind="float", itemsize=8, rank=5, numpy_name="float64", triton="float64",
                aliases=("fp64",), tolerance=1e-12, digits=53, least=2.0**-1074,
            ),
        )
    }
)  # fmt: skip
NAMES: Final[tuple[str, ...]] = tuple(DTYPES)
TRITON: Final[Mapping[str, str]] = MappingProxyType({each.triton: each.name for each in DTYPES.values()})
"""Triton's names (`tl.float16`), and kernbench's."""

_F8 = "the units have float8e4nv and float8e5 only; use one of these"
REFUSED: Final[Mapping[str, str]] = MappingProxyType(
    {
        name: why
        for name, why in {
            **dict.fromkeys(("float8e4b15", "float8e4b8", "float8e5b16"), _F8),
            "void": "no value has this type",
        }.items()
        if name not in TRITON
    }
)
"""Triton's dtypes that no record is of, and why."""

_ITEMSIZES = {each.name: each.itemsize for each in DTYPES.values()}
_BY_NUMPY = {each.numpy_name: each.name for each in DTYPES.values()}
_NARROW = frozenset(each.numpy_name for each in DTYPES.values() if each.kind == "float" and each.itemsize < 4)
_HALF = np.dtype(np.float16)
_SPELLINGS = {
    spelling: each.name for each in DTYPES.values() for spelling in (each.name, each.triton, *each.aliases)
}


def info(name: str) -> DTypeInfo:
    """Return what is fixed about dtype `name`; an unknown name is a `StoreError` that lists the known ones."""
    try:
        return DTYPES[name]
    except (KeyError, TypeError):
        raise StoreError(f"A dtype must be one of {', '.join(NAMES)}, not {brief(name)}; use one of these.") from None


def itemsize(name: str) -> int:
    """Return the bytes of one element."""
    try:
        return _ITEMSIZES[name]
    except (KeyError, TypeError):
        return info(name).itemsize


def tolerance(name: str) -> float:
    """Return the tolerance (rtol = atol) that results of this dtype are compared with; 0 means exactly."""
    return info(name).tolerance


def epsilon(name: str) -> float:
    """Return the distance from 1 to the next number of a float dtype."""
    return 2.0 ** (1 - info(name).digits)


def exact_limit(name: str) -> int:
    """Return the greatest integer up to which a dtype holds every integer."""
    found = info(name)
    if found.kind == "float":
        return 1 << found.digits
    return 1 if found.kind == "bool" else (1 << (8 * found.itemsize - found.signed)) - 1


def is_float(name: str) -> bool:
    """Tell whether the dtype is a floating-point one."""
    return info(name).kind == "float"


def is_int(name: str) -> bool:
    """Tell whether the dtype is an integer one (bool is not)."""
    return info(name).kind == "int"


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the numpy dtype that holds elements of dtype `name`."""
    found = info(name)
    if found.library == "ml_dtypes":
        import ml_dtypes  # the only door; numpy knows the names once it is imported

        narrow: np.dtype[Any] = np.dtype(getattr(ml_dtypes, found.numpy_name))
        return narrow
    return np.dtype(found.numpy_name)


def is_known(given: np.dtype[Any] | type) -> bool:
    """Whether a numpy dtype, or a numpy type of scalars, is that of one of ours."""
    if isinstance(given, type):
        return issubclass(given, np.generic) and given.__name__ in _BY_NUMPY
    return _numpy_name(given) in _BY_NUMPY


@lru_cache(maxsize=256)
def _numpy_name(dtype: np.dtype[Any]) -> str:
    """Return what numpy calls a dtype, which it spells anew each time it is asked."""
    return dtype.name


def dtype_name(dtype: np.dtype[Any]) -> str:
    """Return the name of a numpy dtype; one that kernbench does not have is a `StoreError`."""
    try:
        return _BY_NUMPY[_numpy_name(dtype)]
    except KeyError:
        raise StoreError(
            f"An array must have one of the dtypes {', '.join(NAMES)}, not {brief(dtype.name)}; cast it first."
        ) from None


def dtype_of(given: Any) -> str:
    """Return the name of a dtype spelled as a string or a numpy type; UnsupportedError for any other."""
    found = _SPELLINGS.get(given) if isinstance(given, str) else None
    if found is not None:
        return found
    if isinstance(given, np.dtype) or (isinstance(given, type) and issubclass(given, np.generic)):
        return dtype_name(np.dtype(given))
    raise UnsupportedError(f"a dtype must be one of {', '.join(NAMES)}, not {brief(given)}; use one of these.")


def to_compute(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array in the dtype that arithmetic runs in: narrow floats become f32, others stay as they are."""
    if array.dtype == _HALF:
        return as_f32(array)
    if _numpy_name(array.dtype) in _NARROW:
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
        if name == "f16":
            return as_f16(array)
        if is_int(name) and array.dtype.kind not in "iub":
            return np.asarray(_whole(array.astype(np.float64)).astype(target))
        greatest = info(name).greatest
        if greatest is not None:
            array = np.asarray(np.clip(array.astype(np.float32), -greatest, greatest))
        out: np.ndarray[Any, Any] = array.astype(target)
        return out
