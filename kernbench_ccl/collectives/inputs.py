"""Inputs of a collective whose results are exact, in whatever order they are reduced."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kernbench_core.values.dtypes import cast, exact_limit

_BLOCK: Final = 1 << 16
"""Elements that are made at once, so that what is between stays in the processor's cache."""


def exact_inputs(dtype: str, redop: str | None, count: int, world: int, rank: int, seed: int = 0) -> NDArray[Any]:
    """Return `count` small integers of a rank, such that any order of reducing all ranks' is exact in the dtype.

    For sums no partial sum is above what the dtype holds: where every rank may bring at most 0, only some ranks bring
    a 1 at each element. For products few ranks bring a 2 and all others a 1. Otherwise numbers differ by rank and
    element, so that data that went the wrong way shows. Same arguments, same numbers.
    """
    limit = exact_limit(dtype)
    if redop == "product":
        return _numbers(2, dtype)[1 + _of_few(count, world, rank, seed, min(2, world))]
    if redop in ("sum", "avg") and dtype != "bool" and limit // world < 1:
        return _numbers(1, dtype)[_of_few(count, world, rank, seed, limit)]
    most = 1 if dtype == "bool" else min(1000, limit // world if redop in ("sum", "avg") else limit)
    numbers, generator = _numbers(most, dtype), np.random.default_rng((seed, rank))
    values: NDArray[Any] = np.empty(count, numbers.dtype)
    for start in range(0, count, _BLOCK):
        part = values[start : start + _BLOCK]
        drawn = generator.integers(0, most + 1, len(part), dtype=np.int32)
        numbers.take(drawn, out=part, mode="clip")  # a third of the time of numbers[drawn]
    return values


def _numbers(most: int, dtype: str) -> NDArray[Any]:
    """Return 0 to `most` in the dtype: to look a small number up takes a quarter of the time of converting it."""
    return cast(np.arange(most + 1), dtype)


def _of_few(count: int, world: int, rank: int, seed: int, few: int) -> NDArray[np.int64]:
    """Return 1 where this rank is among the `few` that are chosen for the element, else 0."""
    first = np.random.default_rng((seed, world)).integers(0, world, count)
    return ((rank - first) % world < few).astype(np.int64)
