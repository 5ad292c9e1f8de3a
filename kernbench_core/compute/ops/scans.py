"""Ops along an axis that stays: scans, which keep every partial result, and softmax."""

from __future__ import annotations

from typing import Final

import numpy as np

from kernbench_core.compute.ops.record import (
    LOOKUP,
    STEP,
    Again,
    Form,
    LaneCost,
    MathFunction,
    MathOp,
    NumpyFunction,
    Params,
)
from kernbench_core.compute.ops.reductions import MOST_BITS
from kernbench_core.compute.ops.second_way import EPS, Anew, error_of_sum, scanning
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


# The second way ----------------------------------------------------------------------------------------

_SUMS: Final = scanning(lambda x, axis: x.cumsum(axis))
_PRODUCTS: Final = scanning(lambda x, axis: x.cumprod(axis))


def _sums_again(params: Params, x: Array) -> Anew:
    count = x.shape[params.get("axis") or 0]
    return Anew(_SUMS(params, x), error_of_sum(count) * _SUMS(params, np.abs(x)))


def _products_again(params: Params, x: Array) -> Anew:
    sizes = _SUMS(params, np.abs(np.log2(np.where(x != 0, np.abs(x), 1.0))))
    found = _PRODUCTS(params, x)
    return Anew(found, np.where(sizes > MOST_BITS, np.inf, EPS * (x.size + 4) * np.abs(found)))


def _softmax_again(params: Params, x: Array) -> Array:
    axis = params.get("axis")
    power = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.asarray(power / power.sum(axis=axis, keepdims=True))


_BRAIN = "bf16 stays bf16 (Triton makes it f32); computed in f32, rounded once."

OPS: Final = (
    MathOp(
        "cumsum", _cumulative(np.cumsum), widened, along, Again(_sums_again, _SUMS), form=Form.SCAN, triton=_BRAIN
    ),
    MathOp(
        "cumprod", _cumulative(np.cumprod), same, along, Again(_products_again, _PRODUCTS), form=Form.SCAN,
        triton=_BRAIN,
    ),
    MathOp(
        "softmax", _softmax, floats, along, Again(_softmax_again), form=Form.NORMALISING,
        cost=LaneCost(2) + STEP + (LOOKUP + STEP) + (LOOKUP + LaneCost(3)),  # max and sum, subtract, exp, divide
        triton="Composed of max, sub, exp, sum and div, each a timed command.",
    ),
)  # fmt: skip
