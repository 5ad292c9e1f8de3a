"""What a kind of ops computes for operands of given dtypes and shapes, with all that follows from these done once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from kernbench_core.compute import functions
from kernbench_core.compute.ops import MathOp, Operands, op_of
from kernbench_core.compute.ops.record import Params
from kernbench_core.compute.ops.shape_rules import broadcast
from kernbench_core.values import dtypes
from kernbench_core.values.arrays import Array

Computing = Callable[[Sequence[Array]], Array]
"""Computes an op of a kind from its operands."""

_WIDE: Final = (np.dtype(np.float32), np.dtype(np.float64))


def prepared(name: str, function: Any, params: Params, like: Sequence[Array]) -> Computing:
    """Return what computes ops of core's function `name` on operands like the given ones, bit for bit as it does.

    What it raises, it raises for the first op.
    """
    if name == functions.MATH:
        op = op_of(params["op"])
        floats = [array.dtype for array in (like[1:] if op.operands is Operands.CHOSEN else like)]
        if len(set(floats)) == 1 and dtypes.is_float(dtypes.dtype_name(floats[0])):
            return _of_floats(op, params, like)
    return partial(function, params)


def _of_floats(op: MathOp, params: Params, like: Sequence[Array]) -> Computing:
    """Return what computes a math op on floats of one dtype."""
    calculates = op.operands in (Operands.COMPUTED, Operands.CHOSEN)
    if calculates and len(like) > 1:
        broadcast(op.name, [array.shape for array in like])
    first = 1 if op.operands is Operands.CHOSEN else 0
    widened = calculates and like[first].dtype not in _WIDE
    target = dtypes.numpy_dtype(functions.out_dtype(op, params, like))
    name = dtypes.dtype_name(target)
    plainly = dtypes.is_float(name) and dtypes.info(name).greatest is None
    function = op.function

    def compute(arrays: Sequence[Array]) -> Array:
        given = arrays
        if widened:
            given = [*arrays[:first], *[array.astype(np.float32) for array in arrays[first:]]]
        found: Array = np.asarray(function(params, *given))
        if found.dtype == target:
            return found
        return found.astype(target) if plainly else dtypes.cast(found, name)

    return compute
