"""Second ways to ops along an axis: reductions, scans and softmax."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Final

import numpy as np

from kernbench_builtin.verify.operands import EPS, error_of_sum, lined, reducing, scanning
from kernbench_core.compute.ops.record import Again, Params, both
from kernbench_core.compute.ops.second_way import Anew
from kernbench_core.values.arrays import Array

MOST_BITS: Final = 120.0
"""Products beyond two to this leave the range of f32 on the way, and may be anything."""


def _sum_again(params: Params, x: Array) -> Anew:
    total = lined(params, x, lambda y, a: y.sum(a))
    count = x.size // max(1, math.prod(total.shape))
    return Anew(total, error_of_sum(count) * lined(params, np.abs(x), lambda y, a: y.sum(a)))


def _product_again(params: Params, x: Array) -> Anew:
    sizes = lined(params, np.abs(x), lambda y, a: np.abs(np.log2(np.where(y > 0, y, 1.0))).sum(a))
    found = lined(params, x, lambda y, a: y.prod(a))
    return Anew(found, np.where(sizes > MOST_BITS, np.inf, EPS * (x.size + 4) * np.abs(found)))


def _past_nan(with_nan: Array, without: Array, x: Array, axis: int) -> Array:
    return np.where((x != x).all(axis), with_nan, without)


def _first_again(sign: int) -> Callable[[Array, int], Array]:
    """Look at one element after the other: NaN is less than all, by whichever sign."""

    def of_line(line: Array) -> int:
        numbers = line.tolist()
        return max(range(len(numbers)), key=lambda at: (numbers[at] == numbers[at], sign * numbers[at]))

    return lambda x, axis: np.apply_along_axis(of_line, axis, x)


def _counted_again(params: Params, x: Array, mask: Array | None = None) -> Array:
    found = np.zeros(params["num_bins"], np.int64)
    np.add.at(found, (x if mask is None else x[mask.astype(bool)]).ravel().astype(np.int64), 1)
    return found


_SUMS: Final = scanning(lambda x, axis: x.cumsum(axis))
_PRODUCTS: Final = scanning(lambda x, axis: x.cumprod(axis))


def _sums_again(params: Params, x: Array) -> Anew:
    count = x.shape[params.get("axis") or 0]
    return Anew(_SUMS(params, x), error_of_sum(count) * _SUMS(params, np.abs(x)))


def _products_again(params: Params, x: Array) -> Anew:
    sizes = _SUMS(params, np.abs(np.log2(np.where(x != 0, np.abs(x), 1.0))))
    found = _PRODUCTS(params, x)
    return Anew(found, np.where(sizes > MOST_BITS, np.inf, EPS * (x.size + 4) * np.abs(found)))


def _softmax_again(params: Params, x: Array) -> Array:
    axis = params.get("axis")
    power = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.asarray(power / power.sum(axis=axis, keepdims=True))


WAYS: Final[Mapping[str, Again]] = {
    "sum": Again(_sum_again, reducing(lambda x, axis: x.sum(axis))),
    "prod": Again(_product_again, reducing(lambda x, axis: x.prod(axis))),
    "max": Again(
        reducing(lambda x, axis: _past_nan(x.max(axis), np.where(x != x, -np.inf, x).max(axis), x, axis)),
        reducing(lambda x, axis: x.max(axis)),
    ),
    "min": Again(
        reducing(lambda x, axis: _past_nan(x.min(axis), np.where(x != x, np.inf, x).min(axis), x, axis)),
        reducing(lambda x, axis: x.min(axis)),
    ),
    "xor_sum": Again(integers=reducing(lambda x, axis: reduce(lambda a, b: a ^ b, np.moveaxis(x, axis, 0)))),
    "reduce_or": Again(integers=reducing(lambda x, axis: reduce(lambda a, b: a | b, np.moveaxis(x, axis, 0)))),
    "argmax": both(reducing(_first_again(1))),
    "argmin": both(reducing(_first_again(-1))),
    "any": both(reducing(lambda x, axis: (x != 0).any(axis))),
    "all": both(reducing(lambda x, axis: (x != 0).all(axis))),
    "histogram": both(_counted_again),
    "cumsum": Again(_sums_again, _SUMS),
    "cumprod": Again(_products_again, _PRODUCTS),
    "softmax": Again(_softmax_again),
}
