"""Arithmetic of one, two and three operands, element by element.

Integer `floordiv` and `mod` are those of C and Triton: the quotient is cut towards zero and the remainder has the
sign of the dividend. Division of an integer by zero gives 0 and leaves the dividend as remainder (masked-out lanes
divide by zero all the time, and hardware does not stop for them). Integers wrap. Float `mod` is C's fmod. `maximum`,
`minimum` and `clamp` pass NaN over where there is a number, as Triton's do; `params["propagate_nan"]` lets it through.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kernbench_core.compute.ops.record import (
    LOOKUP,
    STEP,
    LaneCost,
    MathFunction,
    MathOp,
    NumpyFunction,
    Params,
    plain,
)
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


def _of_one(name: str, function: NumpyFunction, triton: str | None = None) -> MathOp:
    return MathOp(name, plain(function), same, elementwise, triton=triton)


def _of_two(name: str, function: MathFunction, cost: LaneCost = STEP, **more: Any) -> MathOp:
    return MathOp(name, function, more.pop("types", same), elementwise, arity=2, cost=cost, **more)


_WHOLE = "Of f16, bf16 and f8 too; integers stay as they are."

OPS: Final = (
    _of_one("abs", np.abs, ""),
    _of_one("neg", np.negative),
    _of_one("relu", lambda x: np.maximum(x, x.dtype.type(0))),
    _of_one("floor", lambda x: x if _is_integer(x) else np.floor(x), _WHOLE),
    _of_one("ceil", lambda x: x if _is_integer(x) else np.ceil(x), _WHOLE),
    _of_one("copy", lambda x: x),
    _of_two("add", plain(np.add), triton=""),
    _of_two("sub", plain(np.subtract), triton=""),
    _of_two("mul", plain(np.multiply), triton=""),
    _of_two("div", plain(np.true_divide), _DIVISION, types=quotient, dividing=True, aliases=("truediv", "fdiv")),
    _of_two("floordiv", plain(_floordiv), _DIVISION + STEP, types=integers, dividing=True),
    _of_two(
        "mod", plain(_mod), _DIVISION + LaneCost(2), dividing=True,  # quotient, cut, and one fused step
    ),
    _of_two("pow", plain(np.power), LOOKUP + STEP + LOOKUP),  # exp2(y log2 x)
    _of_two("minimum", _minimum, triton="bf16 stays bf16, which Triton makes f32."),
    _of_two("maximum", _maximum, triton="bf16 stays bf16, which Triton makes f32."),
    MathOp(
        "fma", plain(lambda a, b, c: a * b + c), same, elementwise, arity=3,
        triton="Two commands, multiply and add; rounded twice.",
    ),
    MathOp("clamp", _clamp, same, elementwise, arity=3, cost=LaneCost(2), triton="Two commands: maximum and minimum."),
)  # fmt: skip
