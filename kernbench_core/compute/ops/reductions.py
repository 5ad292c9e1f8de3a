"""Reductions along axes. `max`, `min`, `argmax` and `argmin` pass NaN over, as Triton's; the latter give the first of
equals, of NaN alone the first element.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
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
    Operands,
    Params,
    ShapeRule,
    TypeRule,
    both,
)
from kernbench_core.compute.ops.second_way import EPS, Anew, error_of_sum, lined, reducing
from kernbench_core.compute.ops.shape_rules import reduced, reduced_of_some
from kernbench_core.compute.ops.type_rules import always, integers, same, widened
from kernbench_core.errors import ShapeError
from kernbench_core.values.arrays import Array, Shape

MOST_BITS: Final = 120.0
"""Products beyond two to this leave the range of f32 on the way, and may be anything."""


def _reduction(function: NumpyFunction) -> MathFunction:
    def along(params: Params, x: Array) -> Array:
        return np.asarray(function(x, axis=params.get("axis"), keepdims=bool(params.get("keepdims", False))))

    return along


def _of_ufunc(ufunc: np.ufunc) -> MathFunction:
    return _reduction(lambda x, axis, keepdims: ufunc.reduce(x, axis=axis, keepdims=keepdims))


def _first_of(ufunc: np.ufunc) -> MathFunction:
    """Make a function that gives where the first element is that equals what a reduction by `ufunc` gives."""

    def along(params: Params, x: Array) -> Array:
        axis, keep = params.get("axis"), bool(params.get("keepdims", False))
        return np.asarray(np.argmax(x == ufunc.reduce(x, axis=axis, keepdims=True), axis=axis, keepdims=keep))

    return along


def in_range(what: str, index: Array, count: int) -> Array:
    """Return integers that are all from 0 to `count` - 1; ShapeError where one is not."""
    if index.size and (index.min() < 0 or index.max() >= count):
        worst = int(index.min() if index.min() < 0 else index.max())
        raise ShapeError(f"{what} must be from 0 to {count - 1}, not {worst}; correct it, or mask it out.")
    return index


def _histogram(params: Params, x: Array, mask: Array | None = None) -> Array:
    bins: int = params["num_bins"]
    kept = x.reshape(-1) if mask is None else x[mask.astype(bool)]
    return np.bincount(in_range("A value of histogram", kept, bins), minlength=bins)


def _bins(op: MathOp, shapes: object, params: Params) -> Shape:
    return (int(params["num_bins"]),)


# The second way ----------------------------------------------------------------------------------------


def _sum_again(params: Params, x: Array) -> Anew:
    total = lined(params, x, lambda y, a: y.sum(a))
    count = x.size // max(1, math.prod(total.shape))
    return Anew(total, error_of_sum(count) * lined(params, np.abs(x), lambda y, a: y.sum(a)))


def _product_again(params: Params, x: Array) -> Anew:
    sizes = lined(params, np.abs(x), lambda y, a: np.abs(np.log2(np.where(y > 0, y, 1.0))).sum(a))
    found = lined(params, x, lambda y, a: y.prod(a))
    return Anew(found, np.where(sizes > MOST_BITS, np.inf, EPS * (x.size + 4) * np.abs(found)))


def _past_nan(with_nan: Array, without: Array, x: Array, axis: int) -> Array:
    return np.where((x != x).all(axis), with_nan, without)


def _first_again(sign: int) -> Callable[[Array, int], Array]:
    """Look at one element after the other: NaN is less than all, by whichever sign."""

    def of_line(line: Array) -> int:
        numbers = line.tolist()
        return max(range(len(numbers)), key=lambda at: (numbers[at] == numbers[at], sign * numbers[at]))

    return lambda x, axis: np.apply_along_axis(of_line, axis, x)


def _counted_again(params: Params, x: Array, mask: Array | None = None) -> Array:
    found = np.zeros(params["num_bins"], np.int64)
    np.add.at(found, (x if mask is None else x[mask.astype(bool)]).ravel().astype(np.int64), 1)
    return found


_GREATEST = Again(
    reducing(lambda x, axis: _past_nan(x.max(axis), np.where(x != x, -np.inf, x).max(axis), x, axis)),
    reducing(lambda x, axis: x.max(axis)),
)
_LEAST = Again(
    reducing(lambda x, axis: _past_nan(x.min(axis), np.where(x != x, np.inf, x).min(axis), x, axis)),
    reducing(lambda x, axis: x.min(axis)),
)
_XOR = Again(integers=reducing(lambda x, axis: reduce(lambda a, b: a ^ b, np.moveaxis(x, axis, 0))))
_OR = Again(integers=reducing(lambda x, axis: reduce(lambda a, b: a | b, np.moveaxis(x, axis, 0))))
_KEPT = "The dtype is kept (Triton widens 16 bits to 32). `return_indices` is a second command."
_FIRST = "The axis may be left out. Always the first of equals."


def _reducing(
    name: str, function: MathFunction, types: TypeRule, again: Again, *, shapes: ShapeRule = reduced_of_some,
    operands: Operands = Operands.COMPUTED, cost: LaneCost = STEP, triton: str | None = None, arity: int = 1,
) -> MathOp:  # fmt: skip
    return MathOp(
        name, function, types, shapes, again, Form.REDUCTION, operands, arity=arity, cost=cost, triton=triton
    )


OPS: Final = (
    _reducing(
        "sum", _reduction(lambda x, axis, keepdims: np.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype)), widened,
        Again(_sum_again, reducing(lambda x, axis: x.sum(axis))), shapes=reduced,
        triton="Computed in f32, rounded once.",
    ),
    _reducing(
        "prod", _reduction(lambda x, axis, keepdims: np.prod(x, axis=axis, keepdims=keepdims, dtype=x.dtype)), widened,
        Again(_product_again, reducing(lambda x, axis: x.prod(axis))), shapes=reduced,
    ),
    _reducing("max", _of_ufunc(np.fmax), same, _GREATEST, triton=_KEPT),
    _reducing("min", _of_ufunc(np.fmin), same, _LEAST, triton=_KEPT),
    _reducing("xor_sum", _of_ufunc(np.bitwise_xor), integers, _XOR, triton=""),
    _reducing("reduce_or", _of_ufunc(np.bitwise_or), integers, _OR, triton=""),
    _reducing(
        "argmax", _first_of(np.fmax), always("int32"), both(reducing(_first_again(1))),
        cost=LaneCost(2), triton=_FIRST,  # compare, and select the index
    ),
    _reducing(
        "argmin", _first_of(np.fmin), always("int32"), both(reducing(_first_again(-1))),
        cost=LaneCost(2), triton=_FIRST,
    ),
    _reducing(
        "any", _reduction(np.any), always("bool"), both(reducing(lambda x, axis: (x != 0).any(axis))), shapes=reduced,
        operands=Operands.GIVEN,
    ),
    _reducing(
        "all", _reduction(np.all), always("bool"), both(reducing(lambda x, axis: (x != 0).all(axis))), shapes=reduced,
        operands=Operands.GIVEN,
    ),
    _reducing(
        "histogram", _histogram, always("int32"), both(_counted_again), shapes=_bins, operands=Operands.GIVEN, arity=0,
        cost=LOOKUP,  # each lane reads, counts and writes at an address of its own [unverified]
        triton="Any number of bins. A value outside is an error, not left out.",
    ),
)  # fmt: skip
