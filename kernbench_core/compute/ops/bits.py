"""Ops on the bits of integers; bool is an integer of one bit. `shr` of a signed integer keeps its sign."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kernbench_core.compute.ops.record import MathOp, NumpyFunction, plain
from kernbench_core.compute.ops.shape_rules import elementwise
from kernbench_core.compute.ops.type_rules import integers
from kernbench_core.values.arrays import Array


def _high(a: Array, b: Array) -> Array:
    """Give the upper half of the product of unsigned integers."""
    bits = 8 * a.dtype.itemsize
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    if bits < 64:
        wide = a.astype(unsigned).astype(np.uint64) * b.astype(unsigned).astype(np.uint64)
        return np.asarray(wide >> np.uint64(bits)).astype(a.dtype)
    half, low = np.uint64(32), np.uint64(2**32 - 1)
    x, y = a.astype(np.uint64), b.astype(np.uint64)
    cross = (x >> half) * (y & low) + ((x & low) * (y & low) >> half)
    other = (x & low) * (y >> half) + (cross & low)
    return np.asarray((x >> half) * (y >> half) + (cross >> half) + (other >> half)).astype(a.dtype)


def _of_bits(name: str, function: NumpyFunction, arity: int = 2, **more: Any) -> MathOp:
    return MathOp(name, plain(function), integers, elementwise, arity=arity, **more)


OPS: Final = (
    _of_bits("and", np.bitwise_and),
    _of_bits("or", np.bitwise_or),
    _of_bits("xor", np.bitwise_xor),
    _of_bits("invert", np.invert, 1, aliases=("not",)),
    _of_bits("shl", np.left_shift, aliases=("lshift",)),
    _of_bits("shr", np.right_shift, aliases=("rshift",), keeps_sign=True),
    MathOp("umulhi", plain(_high), integers, elementwise, arity=2, triton="Of all integers, as if they were unsigned."),
)
