"""The dtypes of results: rules that records of ops name. What operands meet in is `promotion`'s."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernbench_core.compute.ops.record import MathOp, Params
from kernbench_core.compute.promotion import WeakType
from kernbench_core.errors import ShapeError
from kernbench_core.values.dtypes import info, is_float

Dtypes = Sequence[str | WeakType]


def same(op: MathOp, dtypes: Dtypes, params: Params) -> str:
    """Give what the operands meet in."""
    return op.meet(dtypes)


def floats(op: MathOp, dtypes: Dtypes, params: Params) -> str:
    """Give what the operands meet in, which must be a float; the op is computed in f32."""
    common = op.meet(dtypes)
    _must(is_float(common), op, "a float operand", common)
    return common


def integers(op: MathOp, dtypes: Dtypes, params: Params) -> str:
    """Give what the operands meet in, which must not be a float."""
    common = op.meet(dtypes)
    _must(not is_float(common), op, "integer or bool operands", f"invalid operands of type {common}")
    return common


def quotient(op: MathOp, dtypes: Dtypes, params: Params) -> str:
    """Give the float that the operands meet in, of integers f32; the op is computed in f32."""
    common = op.meet(dtypes)
    return common if is_float(common) else "f32"


def widened(op: MathOp, dtypes: Dtypes, params: Params) -> str:
    """Give what the operands meet in, but int32 or uint32 of narrower integers, which sums would soon overflow."""
    common = op.meet(dtypes)
    if is_float(common) or info(common).itemsize >= 4:
        return common
    return "int32" if info(common).signed else "uint32"


def truth(op: MathOp, dtypes: Dtypes, params: Params) -> str:
    """Give bool, of operands that must meet."""
    op.meet(dtypes)
    return "bool"


def chosen(op: MathOp, dtypes: Dtypes, params: Params) -> str:
    """Give what all operands but the first meet in."""
    return op.meet(dtypes[1:])


def asked(op: MathOp, dtypes: Dtypes, params: Params) -> str:
    """Give the dtype of the params."""
    return str(params["dtype"])


def first(op: MathOp, dtypes: Dtypes, params: Params) -> str:
    """Give the dtype of the params, else that of the first operand."""
    return str(params.get("dtype") or dtypes[0])


def always(dtype: str) -> Callable[[MathOp, Dtypes, Params], str]:
    """Return the rule of one dtype, whatever the operands are."""

    def rule(op: MathOp, dtypes: Dtypes, params: Params) -> str:
        return dtype

    return rule


def _must(condition: bool, op: MathOp, what: str, found: str) -> None:
    if not condition:
        raise ShapeError(f"{op.name} must have {what}, not {found}; cast it first.")
