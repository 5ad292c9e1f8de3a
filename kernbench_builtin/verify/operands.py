"""What second ways to ops have in common: errors of sums, operands that meet, and axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from kernbench_core.compute.ops.record import MathFunction, Params
from kernbench_core.compute.ops.second_way import comparable, rounded
from kernbench_core.compute.promotion import meet_all
from kernbench_core.values import dtypes
from kernbench_core.values.arrays import Array

#: Half a unit in the last place of f32: what one operation there may be wrong by, relatively.
EPS: Final = 2.0**-24
#: Errors of n additions hardly ever pass this many times the square root of n.
_SIGMAS: Final = 8.0


def error_of_sum(count: int) -> float:
    """Return by how much of the sum of its magnitudes a sum in f32 may be wrong."""
    return EPS * (2.0 + min(count, _SIGMAS * math.sqrt(count)))


def met(values: Sequence[Array], meet: Callable[[list[str]], str] = meet_all, signed: bool = False) -> list[Array]:
    """Bring operands to the dtype that they meet in, floats of it in f64; what an epilogue has in f64 stays there.

    With `signed` a signed first operand keeps its sign also where it meets an unsigned one.
    """
    if any(x.dtype == np.float64 for x in values):
        return [x.astype(np.float64) for x in values]
    if len({x.dtype for x in values}) > 1:
        common = meet([dtypes.dtype_name(x.dtype) for x in values])
        if signed and values[0].dtype.kind == "i":
            common = common.removeprefix("u")
        values = [rounded(x, common) for x in values]
    return [comparable(x) for x in values]


def lined(params: Params, x: Array, function: Callable[[Array, int], Array]) -> Array:
    """Reduce along the one axis that the axes of the params are made."""
    axis = params.get("axis")
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    gone = sorted(a % x.ndim for a in axes)
    kept = [a for a in range(x.ndim) if a not in gone]
    found = np.asarray(function(x.transpose(*kept, *gone).reshape(*(x.shape[a] for a in kept), -1), len(kept)))
    if params.get("keepdims"):
        return np.expand_dims(found, tuple(range(x.ndim)) if axis is None else axis)
    return found


def reducing(function: Callable[[Array, int], Array]) -> MathFunction:
    """Make a function of an array and an axis one of params and an array, that reduces."""
    return lambda params, x: lined(params, x, function)


def scanning(function: Callable[[Array, int], Array]) -> MathFunction:
    """Make a function of an array and an axis one of params and an array, that scans; from the end with `reverse`."""

    def scan(params: Params, x: Array) -> Array:
        axis = params.get("axis") or 0
        turn = slice(None, None, -1 if params.get("reverse") else 1)
        at = (*[slice(None)] * (axis % max(1, x.ndim)), turn)
        found: Array = function(x[at], axis)[at]
        return found

    return scan
