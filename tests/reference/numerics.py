"""Dtypes, how operands meet, casts, and how far a float may be off: the arithmetic of the reference interpreter.

An array of numbers comes with a `slack`: None where every element is exact, else by how much each may differ from
what another order of sums or another library's `exp` gives. It is carried by evaluating each op at its bounds too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

BOOL, I8, I16, I32, I64 = (np.dtype(name) for name in ("?", "i1", "i2", "i4", "i8"))
U8, U16, U32, U64 = (np.dtype(name) for name in ("u1", "u2", "u4", "u8"))
F16, BF16, F32 = np.dtype("f2"), np.dtype(ml_dtypes.bfloat16), np.dtype("f4")
F64 = np.dtype("f8")
E4M3, E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)
NAMES = {
    **dict.fromkeys(("bool", "int1", "i1"), BOOL),
    **{f"{prefix}{n}": np.dtype(f"i{n // 8}") for n in (8, 16, 32, 64) for prefix in ("int", "i")},
    **{f"{prefix}{n}": np.dtype(f"u{n // 8}") for n in (8, 16, 32, 64) for prefix in ("uint", "u")},
    **dict.fromkeys(("float16", "f16"), F16),
    **dict.fromkeys(("bfloat16", "bf16"), BF16),
    **dict.fromkeys(("float32", "f32"), F32),
    **dict.fromkeys(("float64", "f64"), F64),
    **dict.fromkeys(("float8e4nv", "f8e4m3"), E4M3),
    **dict.fromkeys(("float8e5", "f8e5m2"), E5M2),
}
F8 = (E4M3, E5M2)
Array = np.ndarray[Any, Any]
Slack = Array | None


def dtype_of(name: Any) -> np.dtype[Any]:
    """Give the numpy dtype of a name or a dtype."""
    return NAMES[name] if isinstance(name, str) and name in NAMES else np.dtype(name)


def is_float(dtype: np.dtype[Any]) -> bool:
    """Say whether `dtype` is one of floats, the narrow ones of ml_dtypes included."""
    return dtype in (F16, BF16, F32, F64, *F8)


def is_normal(number: float) -> bool:
    """Say whether f32 has a float of Python's as a normal number, zero, infinity or NaN."""
    return number == 0 or not math.isfinite(number) or 2.0**-126 <= abs(number) <= float(np.finfo(F32).max)


def is_signed(dtype: np.dtype[Any]) -> bool:
    """Say whether an integer dtype has a sign; int1 has none."""
    return dtype.kind == "i"


def meet(a: np.dtype[Any], b: np.dtype[Any], division: bool = False) -> np.dtype[Any]:
    """Give the dtype that two tensors are computed in, by Triton's `computation_type_impl`."""
    if F64 in (a, b):
        return F64
    if F32 in (a, b):
        return F32
    if F16 in (a, b):
        return F32 if division else F16
    if a == b == BF16:
        return F32 if division else BF16
    if BF16 in (a, b):
        return F32
    if a in F8 and b in F8:
        return a if a == b else F16
    if a in F8 or b in F8:
        raise TypeError(f"unexpected types {a} and {b}")
    if is_signed(a) != is_signed(b):
        if division:
            raise TypeError(f"{a} and {b} have different signedness")
        unsigned, signed = (b, a) if is_signed(a) else (a, b)
        return unsigned if bits(unsigned) >= bits(signed) else signed
    return a if bits(a) > bits(b) else b


def bits(dtype: np.dtype[Any]) -> int:
    """Give the width of an integer dtype; int1 has one bit."""
    return 1 if dtype == BOOL else 8 * dtype.itemsize


def cast(array: Array, dtype: np.dtype[Any]) -> Array:
    """Convert numbers: to nearest, towards zero into integers; 8-bit floats saturate, int1 is `!= 0`.

    Integers wrap, and so do floats beyond them; NaN and infinity become 0.
    """
    if dtype == BOOL:
        return np.asarray(array != 0)
    if is_float(array.dtype) and not is_float(dtype):
        whole = [int(x) if np.isfinite(x) else 0 for x in array.astype(np.float64).ravel().tolist()]
        size = 8 * dtype.itemsize
        kept = np.array([x % 2**size for x in whole], np.uint64)
        return kept.astype(f"u{dtype.itemsize}").view(dtype).reshape(array.shape)
    if dtype in F8:
        top = float(ml_dtypes.finfo(dtype).max)
        return np.clip(array.astype(F32), -top, top).astype(dtype)
    if (is_float(array.dtype) or dtype == BF16) and F64 not in (array.dtype, dtype):
        array = array.astype(F32)
    return array.astype(dtype)


def wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Give the dtype that ops on `dtype` are computed in: f32 for every float but f64."""
    return F32 if is_float(dtype) and dtype != F64 else dtype


def moved(array: Array, slack: Slack, sign: int) -> Array:
    """Give the numbers at one end of what they may be."""
    if slack is None:
        return array
    if array.dtype == BOOL:
        return array ^ (slack > 0) if sign > 0 else array
    if is_float(array.dtype):
        return (array.astype(np.float64) + sign * slack).astype(wide(array.dtype)).astype(array.dtype)
    return array + (sign * np.minimum(slack, 1 << 30)).astype(array.dtype)


def distance(a: Array, b: Array) -> Array:
    """Give how far apart two arrays are; equal infinities and NaNs are not, other pairs with one are infinitely far."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    with np.errstate(invalid="ignore"):
        return np.where(same, 0.0, np.nan_to_num(np.abs(x - y), nan=np.inf, posinf=np.inf))


def apply(
    function: Callable[..., Array], pairs: Sequence[tuple[Array, Slack]], doubt: Callable[[Array], Array] | None = None
) -> tuple[Array, Slack]:
    """Compute an elementwise function, and its slack from its values at the ends of what each operand may be.

    `doubt` says how far off the function itself may be, from its result.
    """
    with np.errstate(all="ignore"):
        result = np.asarray(function(*(array for array, _ in pairs)))
        slack = None if doubt is None else np.nan_to_num(doubt(result.astype(np.float64)), nan=0.0, posinf=0.0)
        if any(given is not None for _, given in pairs):
            ends = itertools.product(*((1,) if given is None else (-1, 1) for _, given in pairs))
            far = [
                distance(function(*(moved(*p, s) for p, s in zip(pairs, signs, strict=True))), result) for signs in ends
            ]
            slack = np.maximum.reduce(far) + (0.0 if slack is None else slack)
    return result, None if slack is None or not slack.any() else np.broadcast_to(slack, result.shape)


def exact_sum(magnitudes: Array, terms: Array) -> Array:
    """Say where a sum is exact in f32 in whatever order: multiples of 2^-10 that stay below 2^24 of these."""
    scaled = terms.astype(np.float64) * 1024
    return np.asarray((np.all(scaled == np.rint(scaled))) & (magnitudes * 1024 < 2**24))


def round_off(magnitudes: Array, n: int, terms: Array) -> Slack:
    """Bound the difference between two orders of a sum of `n` terms whose absolute values sum to `magnitudes`."""
    unit = 2.0**-52 if terms.dtype == F64 else 2.0**-23
    bound = np.where(exact_sum(magnitudes, terms), 0.0, unit * max(n, 1) * magnitudes)
    return np.nan_to_num(bound, nan=0.0, posinf=0.0) if bound.any() else None


def both(a: Slack, b: Slack) -> Slack:
    """Add two slacks."""
    return b if a is None else a if b is None else a + b


def few_ulps(result: Array) -> Array:
    """Say how far libraries' transcendental functions may be apart."""
    return np.abs(result) * 2.0**-20 + 2.0**-40


UNARY: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0),
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu_erf": lambda x: 0.5 * x * (1 + np.vectorize(math.erf, otypes=[np.float64])(x / math.sqrt(2))),
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
}
EXACT_UNARY = ("abs", "floor", "ceil", "relu", "sqrt")


def unary(name: str, array: Array, slack: Slack) -> tuple[Array, Slack]:
    """Compute a function of floats in f64 and round it to their dtype, in doubt where libraries differ."""

    def function(x: Array) -> Array:
        return UNARY[name](x.astype(np.float64)).astype(x.dtype)

    cancels = 2.0**-20 if name in ("gelu", "gelu_erf", "sin", "cos") else 0.0
    doubt = None if name in EXACT_UNARY else lambda result: few_ulps(result) + cancels
    return apply(function, [(array, slack)], doubt)


def quotient(a: Array, b: Array) -> Array:
    """Divide integers as C does, towards zero; by zero gives 0."""
    safe = np.where(b == 0, 1, b).astype(b.dtype)
    with np.errstate(all="ignore"):
        whole = a // safe
        rest = a - whole * safe
        cut = whole + ((rest != 0) & ((a < 0) != (safe < 0))).astype(a.dtype)
    return np.where(b == 0, 0, cut).astype(a.dtype)


def remainder(a: Array, b: Array) -> Array:
    """Give what is left of a division, with the sign of the dividend."""
    return np.fmod(a, b) if is_float(a.dtype) else a - quotient(a, b) * b


def bool_arithmetic(name: str) -> Callable[[Array, Array], Array]:
    """Give the arithmetic of int1, which wraps."""
    return np.logical_and if name == "mul" else np.logical_xor


BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "floordiv": quotient,
    "mod": remainder,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
    "maximum": np.fmax,
    "minimum": np.fmin,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
DIVISIONS = ("truediv", "floordiv", "mod")
