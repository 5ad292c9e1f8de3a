"""What a kind of ops computes for operands of given dtypes and shapes, with all that follows from these done once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from kernbench_core.compute import functions
from kernbench_core.compute.backends import Backend
from kernbench_core.compute.ops import MathOp, Operands, op_of
from kernbench_core.compute.ops.record import OfOperands, Params
from kernbench_core.compute.ops.shape_rules import broadcast
from kernbench_core.values import dtypes
from kernbench_core.values.arrays import Array
from kernbench_core.values.halves import as_f16, as_f32

_F16: Final = np.dtype(np.float16)
_WIDE: Final = (np.dtype(np.float32), np.dtype(np.float64))


Compute = Callable[[Sequence[Array]], Array]
"""Computes an op from its operands."""


class Prepared(NamedTuple):
    """What computes ops of a kind; `own` says whether the backend does so."""

    compute: Compute
    own: bool = False


def prepared(name: str, function: Any, params: Params, like: Sequence[Array], backend: Backend) -> Prepared:
    """Return what computes ops of core's function `name` on operands like the given ones, bit for bit as it does.

    What it raises, it raises for the first op. Floats are computed by the backend, as far as it has the op.
    """
    if name == functions.MATH:
        op = op_of(params["op"])
        floats = [array.dtype for array in (like[1:] if op.operands is Operands.CHOSEN else like)]
        if len(set(floats)) == 1 and dtypes.is_float(dtypes.dtype_name(floats[0])):
            return _of_floats(op, params, like, backend)
    return Prepared(partial(function, params))


def _of_floats(op: MathOp, params: Params, like: Sequence[Array], backend: Backend) -> Prepared:
    """Return what computes a math op on floats of one dtype."""
    calculates = op.operands in (Operands.COMPUTED, Operands.CHOSEN)
    if calculates and len(like) > 1:
        broadcast(op.name, [array.shape for array in like])
    first = 1 if op.operands is Operands.CHOSEN else 0
    widened = calculates and like[first].dtype not in _WIDE
    target = dtypes.numpy_dtype(functions.out_dtype(op, params, like))
    name = dtypes.dtype_name(target)
    plainly = dtypes.is_float(name) and dtypes.info(name).greatest is None
    worth = calculates and sum([array.size for array in like]) >= backend.worth_elements
    own = backend.function(op) if worth else None
    function = own or op.function
    function = function.function if isinstance(function, OfOperands) else partial(function, params)

    def compute(arrays: Sequence[Array]) -> Array:
        given = arrays
        if widened:
            given = [*arrays[:first], *[as_f32(array) for array in arrays[first:]]]
        found: Array = function(*given)
        if type(found) is not np.ndarray:  # numpy makes scalars of arrays without axes
            found = np.asarray(found)
        if found.dtype == target:
            return found
        if target == _F16:
            return as_f16(found)
        return found.astype(target) if plainly else dtypes.cast(found, name)

    return Prepared(compute, own is not None)
