"""Reductions along axes. `max`, `min`, `argmax` and `argmin` pass NaN over, as Triton's; the latter give the first of
equals, of NaN alone the first element.
"""

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
    Operands,
    Params,
    ShapeRule,
    TypeRule,
)
from kernbench_core.compute.ops.shape_rules import reduced, reduced_of_some
from kernbench_core.compute.ops.type_rules import always, integers, same, widened
from kernbench_core.errors import ShapeError
from kernbench_core.values.arrays import Array, Shape


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


_KEPT = "The dtype is kept (Triton widens 16 bits to 32). `return_indices` is a second command."
_FIRST = "The axis may be left out. Always the first of equals."


def _reducing(
    name: str, function: MathFunction, types: TypeRule, *, shapes: ShapeRule = reduced_of_some,
    operands: Operands = Operands.COMPUTED, cost: LaneCost = STEP, triton: str | None = None, arity: int = 1,
) -> MathOp:  # fmt: skip
    return MathOp(
        name, function, types, shapes, None, Form.REDUCTION, operands, arity=arity, cost=cost, triton=triton
    )


OPS: Final = (
    _reducing(
        "sum", _reduction(lambda x, axis, keepdims: np.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype)), widened,
        shapes=reduced, triton="Computed in f32, rounded once.",
    ),
    _reducing(
        "prod", _reduction(lambda x, axis, keepdims: np.prod(x, axis=axis, keepdims=keepdims, dtype=x.dtype)), widened,
        shapes=reduced,
    ),
    _reducing("max", _of_ufunc(np.fmax), same, triton=_KEPT),
    _reducing("min", _of_ufunc(np.fmin), same, triton=_KEPT),
    _reducing("xor_sum", _of_ufunc(np.bitwise_xor), integers, triton=""),
    _reducing("reduce_or", _of_ufunc(np.bitwise_or), integers, triton=""),
    _reducing(
        "argmax", _first_of(np.fmax), always("int32"), cost=LaneCost(2), triton=_FIRST,  # compare, and select the index
    ),
    _reducing("argmin", _first_of(np.fmin), always("int32"), cost=LaneCost(2), triton=_FIRST),
    _reducing("any", _reduction(np.any), always("bool"), shapes=reduced, operands=Operands.GIVEN),
    _reducing("all", _reduction(np.all), always("bool"), shapes=reduced, operands=Operands.GIVEN),
    _reducing(
        "histogram", _histogram, always("int32"), shapes=_bins, operands=Operands.GIVEN, arity=0,
        cost=LOOKUP,  # each lane reads, counts and writes at an address of its own [unverified]
        triton="Any number of bins. A value outside is an error, not left out.",
    ),
)  # fmt: skip
