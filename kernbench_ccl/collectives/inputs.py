"""Inputs of a collective whose results are exact, in whatever order they are reduced."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernbench_core.values.dtypes import cast, exact_limit


def exact_inputs(dtype: str, redop: str | None, count: int, world: int, rank: int, seed: int = 0) -> NDArray[Any]:
    """Return `count` small integers of a rank, such that any order of reducing all ranks' is exact in the dtype.

    For sums no partial sum is above what the dtype holds: where every rank may bring at most 0, only some ranks bring
    a 1 at each element. For products few ranks bring a 2 and all others a 1. Otherwise numbers differ by rank and
    element, so that data that went the wrong way shows. Same arguments, same numbers.
    """
    limit = exact_limit(dtype)
    generator = np.random.default_rng((seed, rank))
    if dtype == "bool":
        values = generator.integers(0, 2, count)
    elif redop == "product":
        values = 1 + _of_few(count, world, rank, seed, min(2, world))
    elif redop in ("sum", "avg") and limit // world < 1:
        values = _of_few(count, world, rank, seed, limit)
    else:
        most = limit // world if redop in ("sum", "avg") else limit
        values = generator.integers(0, min(most, 1000) + 1, count)
    return cast(values.astype(np.int64), dtype)


def _of_few(count: int, world: int, rank: int, seed: int, few: int) -> NDArray[np.int64]:
    """Return 1 where this rank is among the `few` that are chosen for the element, else 0."""
    first = np.random.default_rng((seed, world)).integers(0, world, count)
    return ((rank - first) % world < few).astype(np.int64)
