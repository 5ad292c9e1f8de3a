"""What only moves elements, makes them, or gives them another dtype."""

from __future__ import annotations

from math import prod
from typing import Final

import numpy as np

from kernbench_core.compute.ops.record import (
    LOOKUP,
    STEP,
    Form,
    LaneCost,
    MathFunction,
    MathOp,
    Operands,
    Params,
    ShapeRule,
    TypeRule,
)
from kernbench_core.compute.ops.reductions import in_range
from kernbench_core.compute.ops.shape_rules import Shapes, axis_in, broadcast, first, in_words
from kernbench_core.compute.ops.type_rules import asked, same
from kernbench_core.compute.ops.type_rules import first as dtype_of_first
from kernbench_core.errors import ShapeError
from kernbench_core.values.arrays import Array, Shape
from kernbench_core.values.dtypes import numpy_dtype


def _target(params: Params) -> Shape:
    """Return the shape that is asked for: `shape`, or else `shape_out`."""
    return tuple(params["shape"] if params.get("shape") is not None else params["shape_out"])


def _axes(params: Params, rank: int) -> tuple[int, ...]:
    """Return the permutation of `trans`: `axes`, by default the last two swapped."""
    axes = params.get("axes")
    if axes is not None:
        return tuple(axes)
    return (*range(rank - 2), rank - 1, rank - 2) if rank > 1 else tuple(range(rank))


def _full(params: Params, *operands: Array) -> Array:
    fill = operands[0] if operands else np.asarray(params.get("value", 0))
    shape = _target(params)
    return fill if fill.shape == shape else np.broadcast_to(fill, shape)


def _masked_store(params: Params, old: Array, new: Array, mask: Array) -> Array:
    return np.where(np.broadcast_to(mask, old.shape), np.broadcast_to(new, old.shape), old)


def _interleave(params: Params, a: Array, b: Array) -> Array:
    return np.stack((a, b), axis=-1).reshape(*a.shape[:-1], -1)


def _gather(params: Params, source: Array, index: Array) -> Array:
    axis: int = params["axis"]
    inside = in_range("An index of gather", index, source.shape[axis])
    return np.take_along_axis(source, inside.astype(np.int64), axis)


def _bitcast(params: Params, x: Array) -> Array:
    return np.ascontiguousarray(x).view(numpy_dtype(params["dtype"])).reshape(x.shape)


# Shapes ------------------------------------------------------------------------------------------------


def _asked_shape(op: MathOp, shapes: Shapes, params: Params) -> Shape:
    return _target(params)


def _reshaped(op: MathOp, shapes: Shapes, params: Params) -> Shape:
    shape, size = _target(params), prod(shapes[0])
    if prod(shape) != size:
        raise ShapeError(f"A reshape of {shapes[0]} must keep its {size} elements, not ask for {shape}.")
    return shape


def _broadcast_to(op: MathOp, shapes: Shapes, params: Params) -> Shape:
    shape = _target(params)
    if broadcast(op.name, [shapes[0], shape]) != shape:
        raise ShapeError(f"A broadcast must go to a shape that {shapes[0]} fits into, not {shape}.")
    return shape


def _turned(op: MathOp, shapes: Shapes, params: Params) -> Shape:
    given = shapes[0]
    axes = _axes(params, len(given))
    if sorted(a % max(1, len(given)) for a in axes) != list(range(len(given))):
        raise ShapeError(f"The axes of trans must be a permutation of {list(range(len(given)))}, not {axes}.")
    return tuple(given[a] for a in axes)


def _expanded(op: MathOp, shapes: Shapes, params: Params) -> Shape:
    given = shapes[0]
    axis = axis_in(op.name, int(params["axis"]), (*given, 1))
    return (*given[:axis], 1, *given[axis:])


def _joined(op: MathOp, shapes: Shapes, params: Params) -> Shape:
    return (*broadcast(op.name, shapes), 2)


def _concatenated(op: MathOp, shapes: Shapes, params: Params) -> Shape:
    given = shapes[0]
    axis = axis_in("cat", int(params.get("axis") or 0), given)
    if any(s[:axis] + s[axis + 1 :] != given[:axis] + given[axis + 1 :] for s in shapes):
        told = in_words(shapes)
        raise ShapeError(f"The operands of cat must agree in every axis but {axis}, not have shapes {told}.")
    return (*given[:axis], sum(s[axis] for s in shapes), *given[axis + 1 :])


def _move(
    name: str, function: MathFunction, shapes: ShapeRule, *, types: TypeRule = same,
    form: Form = Form.MOVE, operands: Operands = Operands.GIVEN, cost: LaneCost = STEP, arity: int = 1,
    aliases: tuple[str, ...] = (), triton: str | None = None,
) -> MathOp:  # fmt: skip
    return MathOp(name, function, types, shapes, None, form, operands, arity, cost, aliases=aliases, triton=triton)


_SCRATCH = "A timed command that takes scratchpad space; the dtype may be spelled as a string."

OPS: Final = (
    _move(
        "cast", lambda params, x: x, first, types=asked, form=Form.ELEMENTWISE, aliases=("to",),
        triton="Rounds to nearest; `\"rtz\"` is refused. Floats beyond an integer dtype wrap; NaN and infinity are 0.",
    ),
    _move("reshape", lambda params, x: x.reshape(_target(params)), _reshaped, aliases=("view", "ravel"), triton=""),
    _move(
        "trans", lambda params, x: x.transpose(_axes(params, x.ndim)), _turned, aliases=("permute",),
        cost=LaneCost(2), triton="",  # written in another order than read [unverified]
    ),
    _move("broadcast_to", lambda params, x: np.broadcast_to(x, _target(params)), _broadcast_to, triton=""),
    _move("expand_dims", lambda params, x: np.expand_dims(x, params["axis"]), _expanded, triton=""),
    _move(
        "cat", lambda params, *xs: np.concatenate(xs, axis=params.get("axis") or 0), _concatenated,
        operands=Operands.MET, arity=0, triton="The order is always kept; a `dim` may be given.",
    ),
    _move("flip", lambda params, x: np.flip(x, params.get("axis")), first, triton=""),
    _move("join", lambda params, a, b: np.stack((a, b), axis=-1), _joined, operands=Operands.MET, arity=2, triton=""),
    _move("split", lambda params, x: x[..., params["part"]], lambda op, shapes, params: shapes[0][:-1], triton=""),
    _move(
        "interleave", _interleave, lambda op, shapes, params: (*shapes[0][:-1], 2 * shapes[0][-1]), arity=2, triton="",
    ),
    _move("bitcast", _bitcast, first, types=dtype_of_first),
    _move("full", _full, _asked_shape, types=asked, triton=_SCRATCH),
    _move("zeros", _full, _asked_shape, types=asked, arity=0, triton=_SCRATCH),
    _move("masked_store", _masked_store, first, types=dtype_of_first, form=Form.ELEMENTWISE, arity=3),
    _move(
        "gather", _gather, lambda op, shapes, params: shapes[1], types=dtype_of_first, arity=2,
        cost=LOOKUP, triton="An index outside is an error.",  # each lane reads an address of its own [unverified]
    ),
)  # fmt: skip
