"""What an op will give, before it is computed: dtype and shape of its result, and errors when operands do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from kernbench_core import compute_math as ops
from kernbench_core.dtypes import WeakType, info, is_float, is_int, promote
from kernbench_core.errors import ShapeError

Shape = tuple[int, ...]


def op_of(name: str) -> str:
    """Return the plain name of a math op (`truediv` is `div`); ShapeError when there is no such op."""
    plain = ops.ALIASES.get(name, name)
    if plain not in ops.FUNCTIONS:
        raise ShapeError(f"A math op must be one of {', '.join(sorted(ops.FUNCTIONS))}, not {name!r}.")
    return plain


def result_type(op: str, dtypes: Sequence[str | WeakType], params: Mapping[str, Any] | None = None) -> str:
    """Return the dtype of the result of a math op or of `gemm`.

    Operands are promoted as `dtypes.promote` says (Python scalars, given as `bool`, `int` or `float`, are weak). Then
    comparisons, logic and any/all give bool; argmax/argmin int32; `div` gives f32, and so does `mod` of floats, as
    Triton's do; sums of bool, int8 and int16 give int32, of uint8 and uint16 uint32; arithmetic on bool gives int32;
    gemm gives f32 for floats and int32 for integers; cast, full and zeros what `params["dtype"]` says.
    ShapeError where the op does not exist for the dtype.
    """
    if op == "gemm" or op.startswith("gemm_"):
        return "f32" if is_float(promote(dtypes[:2])) else "int32"
    op = op_of(op)
    if op in ("cast", "full", "zeros"):
        return str((params or {})["dtype"])
    if op in ops.COMPARISONS or op in ops.LOGICAL or op in ops.BOOL_REDUCTIONS:
        return "bool"
    if op in ops.INDEX_REDUCTIONS or op == "histogram":
        return "int32"
    if op in ("masked_store", "gather", "bitcast"):
        return str((params or {}).get("dtype") or dtypes[0])
    common = promote(dtypes[1:] if op in ops.SELECT else dtypes)
    if op in ops.DIVISION or (op == "mod" and is_float(common)):
        return "f32"
    if op in ("floordiv", "mod"):
        signs = [info(d).signed for d in dtypes if isinstance(d, str) and is_int(d)]
        _must(len(set(signs)) < 2, op, "integers of one signedness", " and ".join(map(str, dtypes)))
    if op in ops.FLOAT_UNARY or op in ops.NORMALISING:
        _must(is_float(common), op, "a float operand", common)
    elif op in ops.BITWISE or op in ("xor_sum", "reduce_or"):
        _must(not is_float(common), op, "integer or bool operands", common)
        return "int32" if common == "bool" and op in ("shl", "shr") else common
    elif op in ("sum", "prod", "cumsum", "cumprod"):
        narrow = common == "bool" or (is_int(common) and info(common).itemsize < 4)
        return ("int32" if info(common).signed else "uint32") if narrow else common
    elif common == "bool" and (op in ops.BINARY or op in ops.TERNARY or op in ops.UNARY) and op not in _BOOL_SAFE:
        return "int32"
    return common


_BOOL_SAFE = ("minimum", "maximum", "clamp", "copy", "abs", "floor", "ceil", "relu")


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

