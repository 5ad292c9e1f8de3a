"""The rest of what C's math library has, element by element, which Triton reaches as `tl.math` and `libdevice`.

A sum of costs is the steps of a composition, in the forms of Abramowitz and Stegun, chapter 4: argument reductions are
not counted [unverified]. Roundings and tests of floats take a step, as the conversions and comparisons they are.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from kernbench_core.compute.ops.record import LOOKUP, STEP, LaneCost, MathOp, NumpyFunction, Params, plain
from kernbench_core.compute.ops.shape_rules import elementwise
from kernbench_core.compute.ops.type_rules import Dtypes, floats, truth
from kernbench_core.values.arrays import Array

_EXP: Final = LOOKUP + STEP
_LOG: Final = LOOKUP + STEP
_DIVISION: Final = LOOKUP + LaneCost(3)
_SQRT: Final = LOOKUP + STEP
_SINH: Final = _EXP + LOOKUP + LaneCost(2)  # e^x and 1 / e^x, their difference, halved
_ARC: Final = LaneCost(12) + LOOKUP  # a polynomial of the argument or its inverse: 4.4.49
_ARCSINH: Final = _SQRT + LaneCost(2) + _LOG  # log(x + sqrt(x² + 1)): 4.6.20
_ERFC: Final = LaneCost(5 + 1) + _EXP + LOOKUP + LaneCost(4)  # 7.1.26


def _away(x: Array) -> Array:
    """Round to the nearest integer, halves away from zero."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)


def _to_whole(op: MathOp, dtypes: Dtypes, params: Params) -> str:
    """Give int64, of floats."""
    floats(op, dtypes, params)
    return "int64"


def _each(function: Any) -> NumpyFunction:
    """Make a function of arrays of one of Python's floats, whose errors of domain are NaN."""

    def one(x: float) -> float:
        try:
            return float(function(x))
        except (ValueError, OverflowError):
            return math.inf if function in (math.gamma, math.lgamma) and not x < 0 else math.nan

    return np.vectorize(one, otypes=[np.float64])


def _of_one(name: str, function: NumpyFunction, cost: LaneCost = STEP, **more: Any) -> MathOp:
    return MathOp(name, plain(function), more.pop("types", floats), elementwise, cost=cost, **more)


def _of_two(name: str, function: NumpyFunction, cost: LaneCost = STEP) -> MathOp:
    return MathOp(name, plain(function), floats, elementwise, arity=2, cost=cost)


def _predicate(name: str, function: NumpyFunction) -> MathOp:
    return _of_one(name, function, types=truth)


_TRIGONOMETRY = (
    _of_one("tan", np.tan, LOOKUP + LOOKUP + _DIVISION),
    _of_one("asin", np.arcsin, _ARC + _SQRT),
    _of_one("acos", np.arccos, _ARC + _SQRT),
    _of_one("atan", np.arctan, _ARC),
    _of_two("atan2", np.arctan2, _DIVISION + _ARC),
    _of_one("sinh", np.sinh, _SINH),
    _of_one("cosh", np.cosh, _SINH),
    _of_one("asinh", np.arcsinh, _ARCSINH),
    _of_one("acosh", np.arccosh, _ARCSINH),
    _of_one("atanh", np.arctanh, _DIVISION + _LOG + LaneCost(3)),
)
_POWERS = (
    _of_one("exp10", lambda x: np.power(x.dtype.type(10), x), _EXP),
    _of_one("expm1", np.expm1, _EXP + STEP),
    _of_one("log10", np.log10, _LOG),
    _of_one("log1p", np.log1p, _LOG + STEP),
    _of_one("cbrt", np.cbrt, LOOKUP + LOOKUP + LaneCost(2)),  # exp2(log2(x) / 3)
    _of_one("rcp", lambda x: 1.0 / x, LOOKUP),
    _of_one("erfc", _each(math.erfc), _ERFC),
    _of_one("lgamma", _each(math.lgamma), _LOG + LOOKUP + LaneCost(8)),  # Stirling: 6.1.41
    _of_one("tgamma", _each(math.gamma), _LOG + _EXP + LOOKUP + LaneCost(8)),
)
_ROUNDINGS = (
    _of_one("rint", np.rint),
    _of_one("round", _away, LaneCost(3)),
    _of_one("trunc", np.trunc),
    _of_one("llrint", np.rint, types=_to_whole),
    _of_one("llround", _away, LaneCost(3), types=_to_whole),
    _of_one("frac", lambda x: x - np.trunc(x), LaneCost(2)),
)
_TESTS = (
    _predicate("isnan", np.isnan),
    _predicate("isinf", np.isinf),
    _predicate("isfinite", np.isfinite),
    _predicate("signbit", np.signbit),
)
_OF_TWO = (
    _of_two("copysign", np.copysign),
    _of_two("fdim", lambda a, b: np.fmax(a - b, 0), LaneCost(2)),
)

OPS: Final = (*_TRIGONOMETRY, *_POWERS, *_ROUNDINGS, *_TESTS, *_OF_TWO)
