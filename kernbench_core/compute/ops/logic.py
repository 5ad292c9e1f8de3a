"""Comparisons, logic, and the choice between two."""

from __future__ import annotations

from typing import Final

import numpy as np

from kernbench_core.compute.ops.record import MathOp, NumpyFunction, Operands, both, plain
from kernbench_core.compute.ops.shape_rules import elementwise
from kernbench_core.compute.ops.type_rules import always, chosen, truth
from kernbench_core.values.arrays import Array


def _compared(name: str, function: NumpyFunction, again: NumpyFunction, *aliases: str) -> MathOp:
    return MathOp(name, plain(function), truth, elementwise, both(plain(again)), arity=2, aliases=aliases)


def _logical(name: str, function: NumpyFunction, again: NumpyFunction, arity: int) -> MathOp:
    given = Operands.GIVEN
    return MathOp(name, plain(function), always("bool"), elementwise, both(plain(again)), operands=given, arity=arity)


def _where(condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition.astype(bool), x, y)


OPS: Final = (
    _compared("eq", np.equal, lambda a, b: a == b, "equal"),
    _compared("ne", np.not_equal, lambda a, b: a != b, "not_equal"),
    _compared("lt", np.less, lambda a, b: a < b),
    _compared("le", np.less_equal, lambda a, b: a <= b),
    _compared("gt", np.greater, lambda a, b: a > b),
    _compared("ge", np.greater_equal, lambda a, b: a >= b),
    _logical("logical_and", np.logical_and, lambda a, b: (a != 0) & (b != 0), 2),
    _logical("logical_or", np.logical_or, lambda a, b: (a != 0) | (b != 0), 2),
    _logical("logical_not", np.logical_not, lambda x: x == 0, 1),
    MathOp(
        "where", plain(_where), chosen, elementwise, both(plain(_where)), operands=Operands.CHOSEN, arity=3, triton=""
    ),
)
