"""Ops on the bits of integers; bool is an integer of one bit. `shr` of a signed integer keeps its sign."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kernbench_core.compute.ops.record import Again, MathOp, NumpyFunction, plain
from kernbench_core.compute.ops.shape_rules import elementwise
from kernbench_core.compute.ops.type_rules import integers
from kernbench_core.values.arrays import Array


def _left_again(a: Array, b: Array) -> Array:
    return np.where((b >= 0) & (b < 64), a * 2 ** np.clip(b, 0, 62) * np.where(b == 63, 2, 1), 0)


def _right_again(a: Array, b: Array) -> Array:
    return np.where((b >= 0) & (b < 63), a // 2 ** np.clip(b, 0, 62), np.where(a < 0, -1, 0))


def _of_bits(
    name: str, function: NumpyFunction, again: NumpyFunction, arity: int = 2, **more: Any
) -> MathOp:
    return MathOp(name, plain(function), integers, elementwise, Again(integers=plain(again)), arity=arity, **more)


OPS: Final = (
    _of_bits("and", np.bitwise_and, lambda a, b: a & b),
    _of_bits("or", np.bitwise_or, lambda a, b: a | b),
    _of_bits("xor", np.bitwise_xor, lambda a, b: a ^ b),
    _of_bits("invert", np.invert, lambda x: -1 - x, 1, aliases=("not",)),
    _of_bits("shl", np.left_shift, _left_again, aliases=("lshift",)),
    _of_bits("shr", np.right_shift, _right_again, aliases=("rshift",), keeps_sign=True),
)
