"""Special functions: of one float each, computed in f32.

A sum of costs is the steps of a composition: argument reductions are not counted [unverified]. `gelu` is the tanh form,
`gelu_erf` the exact one.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from kernbench_core.compute.ops.record import LOOKUP, STEP, LaneCost, MathOp, NumpyFunction, plain
from kernbench_core.compute.ops.shape_rules import elementwise
from kernbench_core.compute.ops.type_rules import floats
from kernbench_core.values.arrays import Array

_ROUNDED = "Of f16, bf16 and f8 too: computed in f32 and rounded once."
_GELU = math.sqrt(2.0 / math.pi)

_EXP = LOOKUP + STEP  # exp2 of a product
_SIGMOID = STEP + _EXP + STEP + LOOKUP  # negate, exp, add, reciprocal
_TANH = _SIGMOID + LaneCost(2)  # 2 sigmoid(2x) - 1: a product before, a fused multiply-add after
# Abramowitz and Stegun 7.1.26: five fused, square, exp, 1/x, three
_ERF_COST = LaneCost(5 + 1) + _EXP + LOOKUP + LaneCost(3)


def _erf(x: Array) -> Array:
    flat = map(math.erf, x.reshape(-1).tolist())
    return np.fromiter(flat, np.float64, x.size).reshape(x.shape).astype(x.dtype)


def _sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def _gelu(x: Array) -> Array:
    return 0.5 * x * (1.0 + np.tanh(_GELU * (x + 0.044715 * x * x * x)))


def _gelu_erf(x: Array) -> Array:
    return 0.5 * x * (1.0 + _erf(x * math.sqrt(0.5)))


def _of_float(name: str, function: NumpyFunction, cost: LaneCost, **more: Any) -> MathOp:
    return MathOp(name, plain(function), floats, elementwise, cost=cost, **more)


OPS: Final = (
    _of_float("exp", np.exp, _EXP, triton=_ROUNDED),
    _of_float("exp2", np.exp2, LOOKUP, triton=_ROUNDED),
    _of_float("log", np.log, LOOKUP + STEP, triton=_ROUNDED),  # log2, and a product
    _of_float("log2", np.log2, LOOKUP, triton=_ROUNDED),
    _of_float("sqrt", np.sqrt, LOOKUP + STEP, triton=_ROUNDED),  # reciprocal root, and a product
    _of_float("rsqrt", lambda x: 1.0 / np.sqrt(x), LOOKUP, triton=_ROUNDED),
    _of_float("sin", np.sin, LOOKUP, triton=_ROUNDED),
    _of_float("cos", np.cos, LOOKUP, triton=_ROUNDED),
    _of_float(
        "tanh", np.tanh, _TANH, ours="The hyperbolic tangent, as a method of `tl` (Triton keeps it in libdevice).",
    ),
    _of_float("erf", _erf, _ERF_COST, triton=_ROUNDED),
    _of_float("sigmoid", _sigmoid, _SIGMOID, triton=_ROUNDED),
    _of_float("silu", lambda x: x * _sigmoid(x), _SIGMOID + STEP),
    _of_float(
        "gelu", _gelu, _TANH + LaneCost(3 + 2), aliases=("gelu_tanh",),  # three steps inside the tanh, two outside
    ),
    _of_float(
        "gelu_erf", _gelu_erf, _ERF_COST + LaneCost(1 + 2),  # one step inside, two outside
    ),
)  # fmt: skip
