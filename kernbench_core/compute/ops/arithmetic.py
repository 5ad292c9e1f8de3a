"""Arithmetic of one, two and three operands, element by element.

Integer `floordiv` and `mod` are those of C and Triton: the quotient is cut towards zero and the remainder has the
sign of the dividend. Division of an integer by zero gives 0 and leaves the dividend as remainder (masked-out lanes
divide by zero all the time, and hardware does not stop for them). Integers wrap. Float `mod` is C's fmod. `maximum`,
`minimum` and `clamp` pass NaN over where there is a number, as Triton's do; `params["propagate_nan"]` lets it through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from kernbench_core.compute.ops.record import (
    LOOKUP,
    STEP,
    Again,
    LaneCost,
    MathFunction,
    MathOp,
    NumpyFunction,
    Params,
    both,
    plain,
)
from kernbench_core.compute.ops.second_way import EPS, Anew
from kernbench_core.compute.ops.shape_rules import elementwise
from kernbench_core.compute.ops.type_rules import integers, quotient, same
from kernbench_core.values.arrays import Array

_DIVISION = LOOKUP + LaneCost(3)  # reciprocal, product, and one refinement: residual and correction


def _is_integer(x: Array) -> bool:
    return x.dtype.kind in "iub"


def _floordiv(a: Array, b: Array) -> Array:
    a, b = np.broadcast_arrays(a, b)
    found = np.floor_divide(a, b, where=b != 0, out=np.zeros(a.shape, np.result_type(a, b)))
    inexact = found * b != a
    return np.asarray(found + (inexact & ((a < 0) != (b < 0)) & (b != 0)).astype(found.dtype))


def _mod(a: Array, b: Array) -> Array:
    if not _is_integer(a):
        return np.asarray(np.fmod(a, b))
    return np.asarray(a - _floordiv(a, b) * b)


def _extreme(number: NumpyFunction, with_nan: NumpyFunction) -> MathFunction:
    def choose(params: Params, a: Array, b: Array) -> Array:
        return np.asarray((with_nan if params.get("propagate_nan") else number)(a, b))

    return choose


_minimum, _maximum = _extreme(np.fmin, np.minimum), _extreme(np.fmax, np.maximum)


def _clamp(params: Params, x: Array, low: Array, high: Array) -> Array:
    return np.asarray(_minimum(params, _maximum(params, x, low), high))


# The second way ----------------------------------------------------------------------------------------


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


def _of_one(name: str, function: NumpyFunction, again: Again, triton: str | None = None) -> MathOp:
    return MathOp(name, plain(function), same, elementwise, again, triton=triton)


def _of_two(name: str, function: MathFunction, again: Again, cost: LaneCost = STEP, **more: Any) -> MathOp:
    return MathOp(name, function, more.pop("types", same), elementwise, again, arity=2, cost=cost, **more)


_WHOLE = "Of f16, bf16 and f8 too; integers stay as they are."

OPS: Final = (
    _of_one("abs", np.abs, both(plain(np.abs)), ""),
    _of_one("neg", np.negative, both(plain(lambda x: 0 - x))),
    _of_one("relu", lambda x: np.maximum(x, x.dtype.type(0)), both(plain(lambda x: np.where(x < 0, 0, x)))),
    _of_one("floor", lambda x: x if _is_integer(x) else np.floor(x), Again(plain(np.floor), _itself), _WHOLE),
    _of_one("ceil", lambda x: x if _is_integer(x) else np.ceil(x), Again(plain(np.ceil), _itself), _WHOLE),
    _of_one("copy", lambda x: x, both(_itself)),
    _of_two("add", plain(np.add), both(plain(lambda a, b: a + b)), triton=""),
    _of_two("sub", plain(np.subtract), both(plain(lambda a, b: a - b)), triton=""),
    _of_two("mul", plain(np.multiply), both(plain(lambda a, b: a * b)), triton=""),
    _of_two(
        "div", plain(np.true_divide), Again(plain(lambda a, b: a / b)), _DIVISION, types=quotient, dividing=True,
        aliases=("truediv", "fdiv"),
    ),
    _of_two(
        "floordiv", plain(_floordiv),
        Again(plain(lambda a, b: np.floor((a / b).astype(np.float32)).astype(np.float64)), _quotient_again),
        _DIVISION + STEP, types=integers, dividing=True,
    ),
    _of_two(
        "mod", plain(_mod), Again(plain(np.fmod), lambda params, a, b: a - _quotient_again(params, a, b) * b),
        _DIVISION + LaneCost(2), dividing=True,  # quotient, cut, and one fused step
    ),
    _of_two("pow", plain(np.power), both(plain(lambda a, b: a**b)), LOOKUP + STEP + LOOKUP),  # exp2(y log2 x)
    _of_two("minimum", _minimum, both(_min_again), triton=""),
    _of_two("maximum", _maximum, both(_max_again), triton=""),
    MathOp(
        "fma", plain(lambda a, b, c: a * b + c), same, elementwise,
        Again(_fused_again, plain(lambda a, b, c: a * b + c)), arity=3,
        triton="Two commands, multiply and add; rounded twice.",
    ),
    MathOp(
        "clamp", _clamp, same, elementwise,
        both(lambda params, x, low, high: _min_again(params, _max_again(params, x, low), high)), arity=3,
        cost=LaneCost(2),
        triton="Two commands: maximum and minimum.",
    ),
)  # fmt: skip
