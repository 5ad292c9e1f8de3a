"""Ops on the bits of integers; bool is an integer of one bit. `shr` of a signed integer keeps its sign."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kernbench_core.compute.ops.record import Again, MathOp, NumpyFunction, Params, plain
from kernbench_core.compute.ops.shape_rules import elementwise
from kernbench_core.compute.ops.type_rules import integers
from kernbench_core.values.arrays import Array
from kernbench_core.values.dtypes import numpy_dtype


def _left_again(a: Array, b: Array) -> Array:
    if a.dtype == np.uint64:  # numpy has no integers that it and int64 meet in
        return np.asarray(np.vectorize(lambda x, n: (int(x) << min(int(n), 64)) % 2**64, otypes=[np.uint64])(a, b))
    return np.where((b >= 0) & (b < 64), a * 2 ** np.clip(b, 0, 62) * np.where(b == 63, 2, 1), 0)


def _right_again(a: Array, b: Array) -> Array:
    if a.dtype == np.uint64:  # numpy has no integers that it and int64 meet in
        return np.asarray(np.vectorize(lambda x, n: int(x) >> int(n), otypes=[np.uint64])(a, b))
    return np.where((b >= 0) & (b < 63), a // 2 ** np.clip(b, 0, 62), np.where(a < 0, -1, 0))


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


def _high_again(params: Params, a: Array, b: Array) -> Array:
    """Multiply Python's integers."""
    bits = 8 * numpy_dtype(params["dtype"]).itemsize
    kept = (1 << bits) - 1

    def one(x: int, y: int) -> int:
        found = (int(x) & kept) * (int(y) & kept) >> bits
        return found - (1 << 64) if found >= 1 << 63 else found

    return np.asarray(np.vectorize(one, otypes=[np.int64])(a, b))


def _of_bits(
    name: str, function: NumpyFunction, again: NumpyFunction, arity: int = 2, **more: Any
) -> MathOp:
    return MathOp(name, plain(function), integers, elementwise, Again(integers=plain(again)), arity=arity, **more)


OPS: Final = (
    _of_bits("and", np.bitwise_and, lambda a, b: a & b),
    _of_bits("or", np.bitwise_or, lambda a, b: a | b),
    _of_bits("xor", np.bitwise_xor, lambda a, b: a ^ b),
    _of_bits("invert", np.invert, lambda x: np.array(-1).astype(x.dtype) - x, 1, aliases=("not",)),
    _of_bits("shl", np.left_shift, _left_again, aliases=("lshift",)),
    _of_bits("shr", np.right_shift, _right_again, aliases=("rshift",), keeps_sign=True),
    MathOp(
        "umulhi", plain(_high), integers, elementwise, Again(integers=_high_again), arity=2,
        triton="Of all integers, as if they were unsigned.",
    ),
)
