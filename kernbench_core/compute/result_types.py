"""What an op will give, before it is computed: dtype and shape of its result, and errors when operands do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernbench_core.compute.ops import MathOp, op_of
from kernbench_core.compute.promotion import WeakType
from kernbench_core.errors import ShapeError
from kernbench_core.values.arrays import Shape
from kernbench_core.values.dtypes import is_float


def operand_type(op: str | MathOp, dtypes: Sequence[str | WeakType]) -> str:
    """Return the dtype that operands of a math op meet in, as `promotion.meet` says; a condition is none of them."""
    return op_of(op).meet(dtypes)


def result_type(
    op: str | MathOp, dtypes: Sequence[str | WeakType], params: Mapping[str, Any] | None = None
) -> str:
    """Return the dtype of the result of a math op, by the rule of its record, or of `gemm`.

    Python types stand for numbers. gemm gives f32 for floats and int32 for integers. ShapeError where the op does not
    exist for the dtypes.
    """
    if isinstance(op, str) and (op == "gemm" or op.startswith("gemm_")):
        return "f32" if any(isinstance(d, str) and is_float(d) for d in dtypes[:2]) else "int32"
    found = op_of(op)
    return found.types(found, dtypes, params or {})


def result_shape(op: str | MathOp, shapes: Sequence[Shape], params: Mapping[str, Any] | None = None) -> Shape:
    """Return the shape of the result of a math op or of `gemm`; ShapeError when the operands do not fit."""
    if isinstance(op, str) and (op == "gemm" or op.startswith("gemm_")):
        return gemm_shape(shapes[0], shapes[1], params or {})
    found = op_of(op)
    return found.shapes(found, shapes, params or {})


def gemm_shape(a: Shape, b: Shape, params: Mapping[str, Any]) -> Shape:
    """Return (m, n) of (m, k) @ (k, n), after the transpositions that params ask for."""
    if len(a) != 2 or len(b) != 2:
        raise ShapeError(f"The operands of dot must have two axes each, not shapes {a} and {b}; reshape them.")
    m, k = a[::-1] if params.get("transpose_a") else a
    k_b, n = b[::-1] if params.get("transpose_b") else b
    if k != k_b:
        raise ShapeError(f"The operands of dot must be (m, k) and (k, n), not {(m, k)} and {(k_b, n)}; k must agree.")
    return m, n
