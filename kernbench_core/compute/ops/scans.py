"""Ops along an axis that stays: scans, which keep every partial result, and softmax."""

from __future__ import annotations

from typing import Final

import numpy as np

from kernbench_core.compute.ops.record import (
    LOOKUP,
    STEP,
    Form,
    LaneCost,
    MathFunction,
    MathOp,
    NumpyFunction,
    Params,
)
from kernbench_core.compute.ops.shape_rules import along
from kernbench_core.compute.ops.type_rules import floats, same, widened
from kernbench_core.values.arrays import Array


def _cumulative(function: NumpyFunction) -> MathFunction:
    def scan(params: Params, x: Array) -> Array:
        axis = params.get("axis") or 0
        if params.get("reverse", False):
            return np.flip(function(np.flip(x, axis), axis=axis, dtype=x.dtype), axis)
        return np.asarray(function(x, axis=axis, dtype=x.dtype))

    return scan


def _softmax(params: Params, x: Array) -> Array:
    axis = params.get("axis")
    shifted = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return np.asarray(shifted / np.sum(shifted, axis=axis, keepdims=True))


_BRAIN = "bf16 stays bf16 (Triton makes it f32); computed in f32, rounded once."

OPS: Final = (
    MathOp("cumsum", _cumulative(np.cumsum), widened, along, form=Form.SCAN, triton=_BRAIN),
    MathOp("cumprod", _cumulative(np.cumprod), same, along, form=Form.SCAN, triton=_BRAIN),
    MathOp(
        "softmax", _softmax, floats, along, form=Form.NORMALISING,
        cost=LaneCost(2) + STEP + (LOOKUP + STEP) + (LOOKUP + LaneCost(3)),  # max and sum, subtract, exp, divide
        triton="Composed of max, sub, exp, sum and div, each a timed command.",
    ),
)  # fmt: skip
