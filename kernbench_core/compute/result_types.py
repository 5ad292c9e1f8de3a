"""What an op will give, before it is computed: dtype and shape of its result, and errors when operands do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from kernbench_core.compute import math_functions as ops
from kernbench_core.compute.promotion import WeakType, meet_all
from kernbench_core.errors import ShapeError
from kernbench_core.values.dtypes import info, is_float

Shape = tuple[int, ...]


def op_of(name: str) -> str:
    """Return the plain name of a math op (`truediv` is `div`); ShapeError when there is no such op."""
    plain = ops.ALIASES.get(name, name)
    if plain not in ops.FUNCTIONS:
        raise ShapeError(f"A math op must be one of {', '.join(sorted(ops.FUNCTIONS))}, not {name!r}.")
    return plain


def operand_type(op: str, dtypes: Sequence[str | WeakType]) -> str:
    """Return the dtype that operands of a math op meet in, as `promotion.meet` says; a condition is none of them."""
    return meet_all(dtypes, dividing=ops.ALIASES.get(op, op) in _DIVIDING)


def result_type(op: str, dtypes: Sequence[str | WeakType], params: Mapping[str, Any] | None = None) -> str:
    """Return the dtype of the result of a math op or of `gemm`.

    It is what the operands meet in (`operand_type`; Python types stand for numbers), but comparisons, logic and any/all
    give bool; argmax/argmin int32; `div` of integers f32; sums of bool and of integers below 32 bits int32 or uint32,
    of the same sign; gemm f32 for floats and int32 for integers; cast, full and zeros what `params["dtype"]` says.
    ShapeError where the op does not exist for the dtypes.
    """
    if op == "gemm" or op.startswith("gemm_"):
        return "f32" if any(isinstance(d, str) and is_float(d) for d in dtypes[:2]) else "int32"
    op = op_of(op)
    if op in ("cast", "full", "zeros"):
        return str((params or {})["dtype"])
    if op in ops.LOGICAL or op in ops.BOOL_REDUCTIONS:
        return "bool"
    if op in ops.INDEX_REDUCTIONS or op == "histogram":
        return "int32"
    if op in ("masked_store", "gather", "bitcast"):
        return str((params or {}).get("dtype") or dtypes[0])
    common = operand_type(op, dtypes[1:] if op in ops.SELECT else dtypes)
    if op in ops.COMPARISONS:
        return "bool"
    if op in ops.FLOAT_UNARY or op in ops.NORMALISING:
        _must(is_float(common), op, "a float operand", common)
    elif op in ops.BITWISE or op in ("xor_sum", "reduce_or", "floordiv"):
        _must(not is_float(common), op, "integer or bool operands", common)
    elif op in ops.DIVISION:
        return common if is_float(common) else "f32"
    elif op in ops.WIDENING and not is_float(common) and info(common).itemsize < 4:
        return "int32" if info(common).signed else "uint32"
    return common


_DIVIDING = (*ops.DIVISION, "floordiv", "mod")


def result_shape(op: str, shapes: Sequence[Shape], params: Mapping[str, Any] | None = None) -> Shape:
    """Return the shape of the result of a math op or of `gemm`; ShapeError when the operands do not fit."""
    given = params or {}
    if op == "gemm" or op.startswith("gemm_"):
        return gemm_shape(shapes[0], shapes[1], given)
    op = op_of(op)
    if op in ops.REDUCTIONS or op in ops.INDEX_REDUCTIONS or op in ops.BOOL_REDUCTIONS:
        return _reduced(op, shapes[0], given)
    if op in ops.SCANS or op in ops.NORMALISING:
        if given.get("axis") is not None:
            _axis_in(op, int(given["axis"]), shapes[0])
        return shapes[0]
    if op == "histogram":
        return (int(given["num_bins"]),)
    if op == "gather":
        return shapes[1]
    if op in ops.MOVES:
        return _moved(op, shapes, given)
    return broadcast(op, shapes)


def broadcast(op: str, shapes: Sequence[Shape]) -> Shape:
    """Return the shape that operands broadcast to, as numpy does."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ShapeError(
            f"The operands of {op} must broadcast to one shape, not {_list(shapes)}; reshape one of them."
        ) from None


def gemm_shape(a: Shape, b: Shape, params: Mapping[str, Any]) -> Shape:
    """Return (m, n) of (m, k) @ (k, n), after the transpositions that params ask for."""
    if len(a) != 2 or len(b) != 2:
        raise ShapeError(f"The operands of dot must have two axes each, not shapes {a} and {b}; reshape them.")
    m, k = a[::-1] if params.get("transpose_a") else a
    k_b, n = b[::-1] if params.get("transpose_b") else b
    if k != k_b:
        raise ShapeError(f"The operands of dot must be (m, k) and (k, n), not {(m, k)} and {(k_b, n)}; k must agree.")
    return m, n


def _reduced(op: str, shape: Shape, params: Mapping[str, Any]) -> Shape:
    axis = params.get("axis")
    axes = range(len(shape)) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    gone = {_axis_in(op, a, shape) for a in axes}
    if op not in ("sum", "prod", "any", "all") and any(shape[a] == 0 for a in gone):
        raise ShapeError(f"An axis that {op} reduces must not be empty, not of shape {shape}; skip the empty tensor.")
    if params.get("keepdims"):
        return tuple(1 if i in gone else extent for i, extent in enumerate(shape))
    return tuple(extent for i, extent in enumerate(shape) if i not in gone)


def _moved(op: str, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    first = shapes[0] if shapes else ()
    if op == "join":
        return (*broadcast(op, shapes), 2)
    if op == "split":
        return first[:-1]
    if op == "interleave":
        return (*first[:-1], 2 * first[-1])
    if op in ("cast", "masked_store", "flip", "bitcast"):
        return first
    if op in ("full", "zeros"):
        return ops.target_shape(params)
    if op == "reshape":
        shape = ops.target_shape(params)
        if prod(shape) != prod(first):
            raise ShapeError(f"A reshape of {first} must keep its {prod(first)} elements, not ask for {shape}.")
        return shape
    if op == "broadcast_to":
        shape = ops.target_shape(params)
        if broadcast(op, [first, shape]) != shape:
            raise ShapeError(f"A broadcast must go to a shape that {first} fits into, not {shape}.")
        return shape
    if op == "trans":
        axes = ops.axes_of(params, len(first))
        if sorted(a % max(1, len(first)) for a in axes) != list(range(len(first))):
            raise ShapeError(f"The axes of trans must be a permutation of {list(range(len(first)))}, not {axes}.")
        return tuple(first[a] for a in axes)
    if op == "expand_dims":
        axis = _axis_in(op, int(params["axis"]), (*first, 1))
        return (*first[:axis], 1, *first[axis:])
    return _joined(shapes, params)


def _joined(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    first = shapes[0]
    axis = _axis_in("cat", int(params.get("axis") or 0), first)
    if any(s[:axis] + s[axis + 1 :] != first[:axis] + first[axis + 1 :] for s in shapes):
        raise ShapeError(f"The operands of cat must agree in every axis but {axis}, not have shapes {_list(shapes)}.")
    return (*first[:axis], sum(s[axis] for s in shapes), *first[axis + 1 :])


def _axis_in(op: str, axis: int, shape: Shape) -> int:
    if not -len(shape) <= axis < len(shape):
        raise ShapeError(f"The axis of {op} must be one of the {len(shape)} axes of {shape}, not {axis}.")
    return axis % len(shape)


def _must(condition: bool, op: str, what: str, dtype: str) -> None:
    if not condition:
        raise ShapeError(f"{op} must have {what}, not {dtype}; cast it first.")


def _list(shapes: Sequence[Shape]) -> str:
    return " and ".join(map(str, shapes))

