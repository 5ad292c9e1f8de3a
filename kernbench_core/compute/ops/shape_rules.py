"""The shapes of results: rules that records of ops name. Those of single moves are beside them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernbench_core.compute.ops.record import MathOp, Params
from kernbench_core.errors import ShapeError
from kernbench_core.values.arrays import Shape

Shapes = Sequence[Shape]


def broadcast(op: str, shapes: Shapes) -> Shape:
    """Return the shape that operands broadcast to, as numpy does."""
    if shapes and shapes.count(shapes[0]) == len(shapes):
        return shapes[0]  # which numpy takes its time for
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ShapeError(
            f"The operands of {op} must broadcast to one shape, not {in_words(shapes)}; reshape one of them."
        ) from None


def elementwise(op: MathOp, shapes: Shapes, params: Params) -> Shape:
    """Give the shape that the operands broadcast to."""
    return broadcast(op.name, shapes)


def first(op: MathOp, shapes: Shapes, params: Params) -> Shape:
    """Give the shape of the first operand."""
    return shapes[0] if shapes else ()


def along(op: MathOp, shapes: Shapes, params: Params) -> Shape:
    """Give the shape of the operand, which must have the axis."""
    if params.get("axis") is not None:
        axis_in(op.name, int(params["axis"]), shapes[0])
    return shapes[0]


def reduced(op: MathOp, shapes: Shapes, params: Params) -> Shape:
    """Leave out the axes that are reduced, or keep them with extent 1."""
    gone = _gone(op, shapes[0], params)
    if params.get("keepdims"):
        return tuple(1 if i in gone else extent for i, extent in enumerate(shapes[0]))
    return tuple(extent for i, extent in enumerate(shapes[0]) if i not in gone)


def reduced_of_some(op: MathOp, shapes: Shapes, params: Params) -> Shape:
    """As `reduced`, of an op that has no result where there is nothing."""
    shape = shapes[0]
    if any(shape[a] == 0 for a in _gone(op, shape, params)):
        raise ShapeError(
            f"An axis that {op.name} reduces must not be empty, not of shape {shape}; skip the empty tensor."
        )
    return reduced(op, shapes, params)


def _gone(op: MathOp, shape: Shape, params: Params) -> set[int]:
    axis = params.get("axis")
    axes = range(len(shape)) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    return {axis_in(op.name, a, shape) for a in axes}


def axis_in(op: str, axis: int, shape: Shape) -> int:
    """Return an axis counted from the front; ShapeError when the shape has none such."""
    if not -len(shape) <= axis < len(shape):
        raise ShapeError(f"The axis of {op} must be one of the {len(shape)} axes of {shape}, not {axis}.")
    return axis % len(shape)


def in_words(shapes: Shapes) -> str:
    """Name shapes for a sentence."""
    return " and ".join(map(str, shapes))
