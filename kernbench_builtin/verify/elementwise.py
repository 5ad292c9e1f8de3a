"""Second ways to ops that take elements one by one: arithmetic, functions of floats, bits, comparisons, choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from kernbench_builtin.verify.operands import EPS
from kernbench_core.compute.ops.record import Again, MathFunction, NumpyFunction, Params, both, plain
from kernbench_core.compute.ops.second_way import Anew
from kernbench_core.values.arrays import Array
from kernbench_core.values.dtypes import numpy_dtype


def _itself(params: Params, x: Array) -> Array:
    return x


def _quotient_again(params: Params, a: Array, b: Array) -> Array:
    """Divide integers towards zero; by zero gives zero."""
    divisor = np.where(b == 0, 1, b)
    return np.where(b == 0, 0, (a - np.fmod(a, divisor)) // divisor)


def _extreme_again(pick: Callable[[Array, Array], Array]) -> MathFunction:
    """Choose between two, passing NaN over unless it is asked for."""

    def choose(params: Params, a: Array, b: Array) -> Array:
        found = np.where(b != b, a, np.where(a != a, b, np.where(pick(a, b), a, b)))
        return np.where((a != a) | (b != b), np.nan, found) if params.get("propagate_nan") else found

    return choose


_min_again, _max_again = _extreme_again(np.less_equal), _extreme_again(np.greater_equal)


def _fused_again(params: Params, a: Array, b: Array, c: Array) -> Anew:
    """Multiply and add; the product of f32 is rounded too."""
    found = a * b + c
    return Anew(found, np.nan_to_num(4 * EPS * np.abs(found) + EPS * np.abs(a * b)))


def _rsqrt_again(x: Array) -> Array:
    """Take a power, which would have neither the sign of -0 nor NaN of -inf."""
    return np.where(x < 0, np.nan, np.copysign(x**-0.5, x))


def _away_again(x: Array) -> Array:
    return np.where(np.isfinite(x), np.copysign(np.floor(np.abs(x) + 0.5), x), x)


_ERF: Final = np.vectorize(math.erf, otypes=[np.float64])


def _each(function: Any) -> NumpyFunction:
    """Make a function of arrays of one of Python's floats, whose errors of domain are NaN, and of range infinite."""

    def one(x: float) -> float:
        try:
            return float(function(x))
        except (ValueError, OverflowError):
            return math.inf if function in (math.gamma, math.lgamma) and not x < 0 else math.nan

    return np.vectorize(one, otypes=[np.float64])


def _left_again(a: Array, b: Array) -> Array:
    if a.dtype == np.uint64:  # numpy has no integers that it and int64 meet in
        return np.asarray(np.vectorize(lambda x, n: (int(x) << min(int(n), 64)) % 2**64, otypes=[np.uint64])(a, b))
    return np.where((b >= 0) & (b < 64), a * 2 ** np.clip(b, 0, 62) * np.where(b == 63, 2, 1), 0)


def _right_again(a: Array, b: Array) -> Array:
    if a.dtype == np.uint64:  # numpy has no integers that it and int64 meet in
        return np.asarray(np.vectorize(lambda x, n: int(x) >> int(n), otypes=[np.uint64])(a, b))
    return np.where((b >= 0) & (b < 63), a // 2 ** np.clip(b, 0, 62), np.where(a < 0, -1, 0))


def _high_again(params: Params, a: Array, b: Array) -> Array:
    """Multiply Python's integers."""
    bits = 8 * numpy_dtype(params["dtype"]).itemsize
    kept = (1 << bits) - 1

    def one(x: int, y: int) -> int:
        found = (int(x) & kept) * (int(y) & kept) >> bits
        return found - (1 << 64) if found >= 1 << 63 else found

    return np.asarray(np.vectorize(one, otypes=[np.int64])(a, b))


_FLOATS: Final[Mapping[str, NumpyFunction]] = {
    "exp": np.exp, "exp2": lambda x: 2.0**x, "log": np.log, "log2": np.log2, "sqrt": np.sqrt, "rsqrt": _rsqrt_again,
    "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "erf": _ERF, "sigmoid": lambda x: 0.5 * (1.0 + np.tanh(0.5 * x)),
    "silu": lambda x: x * 0.5 * (1.0 + np.tanh(0.5 * x)),
    "gelu": lambda x: x * 0.5 * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))),
    "gelu_erf": lambda x: x * 0.5 * (1.0 + _ERF(x / math.sqrt(2.0))),
    "tan": lambda x: np.sin(x) / np.cos(x), "exp10": lambda x: 10.0**x, "rcp": lambda x: x**-1.0,
    # numpy has these in f64 by another routine than in f32
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "expm1": np.expm1, "log10": np.log10,
    "log1p": np.log1p, "cbrt": np.cbrt, "rint": np.rint, "trunc": np.trunc, "llrint": np.rint,
    "erfc": _each(math.erfc), "lgamma": _each(math.lgamma), "tgamma": _each(math.gamma),
    "round": _away_again, "llround": _away_again, "frac": lambda x: np.where(np.isinf(x), np.nan, np.modf(x)[0]),
    "isnan": lambda x: x != x, "isinf": lambda x: np.abs(x) == np.inf, "isfinite": lambda x: np.abs(x) < np.inf,
    "signbit": lambda x: np.copysign(1.0, x) < 0,
    "copysign": lambda a, b: np.where(np.signbit(b), -np.abs(a), np.abs(a)),
    "fdim": lambda a, b: np.where(a > b, a - b, 0.0),
}  # fmt: skip

_BITS: Final[Mapping[str, NumpyFunction]] = {
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "invert": lambda x: np.array(-1).astype(x.dtype) - x, "shl": _left_again, "shr": _right_again,
}  # fmt: skip

_ALIKE: Final[Mapping[str, NumpyFunction]] = {
    "abs": np.abs, "neg": lambda x: 0 - x, "relu": lambda x: np.where(x < 0, 0, x), "copy": lambda x: x,
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "pow": lambda a, b: a**b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "logical_and": lambda a, b: (a != 0) & (b != 0),
    "logical_or": lambda a, b: (a != 0) | (b != 0), "logical_not": lambda x: x == 0,
    "where": lambda condition, x, y: np.where(condition.astype(bool), x, y),
}  # fmt: skip

WAYS: Final[Mapping[str, Again]] = {
    **{name: Again(plain(function)) for name, function in _FLOATS.items()},
    **{name: Again(integers=plain(function)) for name, function in _BITS.items()},
    **{name: both(plain(function)) for name, function in _ALIKE.items()},
    "umulhi": Again(integers=_high_again),
    "floor": Again(plain(np.floor), _itself),
    "ceil": Again(plain(np.ceil), _itself),
    "div": Again(plain(lambda a, b: a / b)),
    "floordiv": Again(
        plain(lambda a, b: np.floor((a / b).astype(np.float32)).astype(np.float64)), _quotient_again
    ),
    "mod": Again(plain(np.fmod), lambda params, a, b: a - _quotient_again(params, a, b) * b),
    "minimum": both(_min_again),
    "maximum": both(_max_again),
    "fma": Again(_fused_again, plain(lambda a, b, c: a * b + c)),
    "clamp": both(lambda params, x, low, high: _min_again(params, _max_again(params, x, low), high)),
}
