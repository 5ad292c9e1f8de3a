"""Inputs of a collective whose results are exact, in whatever order they are reduced."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kernbench_core.values.dtypes import cast, exact_limit

DRAWS: Final = 1 << 16
"""Of so many numbers one is drawn."""
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
    return drawn(_for_draws(most, dtype), count, np.random.default_rng((seed, rank)))


def drawn(numbers: NDArray[Any], count: int, generator: np.random.Generator) -> NDArray[Any]:
    """Return `count` of `DRAWS` numbers, each as likely; four come of one step of the generator."""
    values: NDArray[Any] = np.empty(count, numbers.dtype)
    for start in range(0, count, _BLOCK):
        part = values[start : start + _BLOCK]
        raw: NDArray[Any] = generator.bit_generator.random_raw(-(-len(part) // 4))
        which = raw.astype("<u8", copy=False).view("<u2")[: len(part)]
        numbers.take(which, out=part, mode="clip")  # a third of the time of numbers[which]
    return values


def _numbers(most: int, dtype: str) -> NDArray[Any]:
    """Return 0 to `most` in the dtype: to look a small number up takes a quarter of the time of converting it."""
    return cast(np.arange(most + 1), dtype)


@lru_cache(maxsize=4)
def _for_draws(most: int, dtype: str) -> NDArray[Any]:
    """Return 0 to `most` in order, each as often as the others, but for one."""
    return _numbers(most, dtype)[np.arange(DRAWS) * (most + 1) // DRAWS]


def _of_few(count: int, world: int, rank: int, seed: int, few: int) -> NDArray[np.int64]:
    """Return 1 where this rank is among the `few` that are chosen for the element, else 0."""
    first = np.random.default_rng((seed, world)).integers(0, world, count)
    return ((rank - first) % world < few).astype(np.int64)
