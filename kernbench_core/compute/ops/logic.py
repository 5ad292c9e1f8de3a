"""Comparisons, logic, and the choice between two."""

from __future__ import annotations

from typing import Final

import numpy as np

from kernbench_core.compute.ops.record import MathOp, NumpyFunction, Operands, plain
from kernbench_core.compute.ops.shape_rules import elementwise
from kernbench_core.compute.ops.type_rules import always, chosen, truth
from kernbench_core.values.arrays import Array


def _compared(name: str, function: NumpyFunction, *aliases: str) -> MathOp:
    return MathOp(name, plain(function), truth, elementwise, arity=2, aliases=aliases)


def _logical(name: str, function: NumpyFunction, arity: int) -> MathOp:
    return MathOp(name, plain(function), always("bool"), elementwise, operands=Operands.GIVEN, arity=arity)


def _where(condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition.astype(bool), x, y)


OPS: Final = (
    _compared("eq", np.equal, "equal"),
    _compared("ne", np.not_equal, "not_equal"),
    _compared("lt", np.less),
    _compared("le", np.less_equal),
    _compared("gt", np.greater),
    _compared("ge", np.greater_equal),
    _logical("logical_and", np.logical_and, 2),
    _logical("logical_or", np.logical_or, 2),
    _logical("logical_not", np.logical_not, 1),
    MathOp("where", plain(_where), chosen, elementwise, operands=Operands.CHOSEN, arity=3, triton=""),
)
