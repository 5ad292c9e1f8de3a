"""Inputs of a collective whose results are exact, in whatever order they are reduced."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from kernbench_core.values.dtypes import cast, exact_limit, info, is_int, numpy_dtype

DRAWS: Final = 1 << 16
"""Of so many numbers one is drawn."""
FEW: Final = 2
"""Of so many ranks' numbers an average is made at each element; those of the others are 0."""
_BLOCK: Final = 1 << 16
"""Elements that are made at once, so that what is between stays in the processor's cache."""


@frozen
class _Band:
    """Numbers from `least` to `most` that those ranks bring to an element whose place is below `below`."""

    least: int
    most: int
    below: int


def exact_inputs(dtype: str, redop: str | None, count: int, world: int, rank: int, seed: int = 0) -> NDArray[Any]:
    """Return `count` whole numbers of a rank, such that any order of reducing all ranks' is exact in the dtype.

    Those of an integer dtype are of its whole range, as its sums and products wrap; those of floats and bool are small.
    Averages may be rounded when they are divided. A contribution that is lost shows with as few elements as there are
    ranks: where not every rank tells in each element, they take turns. Numbers differ by rank and element, so that data
    that went the wrong way shows. Same arguments, same numbers.
    """
    if is_int(dtype):
        return _integers(dtype, redop, count, world, rank, seed)
    bands, generator = _bands(dtype, redop, world), np.random.default_rng((seed, rank))
    found = drawn(_for_draws(bands[0].least, bands[0].most, dtype), count, generator)
    if len(bands) > 1:
        places = _places(count, world, rank, seed, spare=dtype == "bool")
        for before, band in pairwise(bands):
            numbers = drawn(_for_draws(band.least, band.most, dtype), count, generator)
            np.copyto(found, numbers, where=places >= before.below)
    return found


def _integers(dtype: str, redop: str | None, count: int, world: int, rank: int, seed: int) -> NDArray[Any]:
    """Return `count` numbers of an integer dtype, each as likely where they are moved or added.

    A product has odd ones alone: no number of others makes it 0. The greatest or least is that of each rank in turn: by
    element it and the others are of the two halves of the lower half of the range, of its upper half, or of all of it.
    So results have either sign, and so has what they are compared with.
    """
    size = info(dtype).itemsize
    words: NDArray[Any] = np.random.default_rng((seed, rank)).bit_generator.random_raw(-(-count * size // 8))
    raw = words.astype("<u8", copy=False).view(f"<u{size}")[:count].astype(f"u{size}", copy=False)
    if redop == "product":
        raw |= 1
    elif redop in ("min", "max"):
        top = 8 * size - 1
        high = ((_places(count, world, rank, seed, spare=False) == 0) == (redop == "max")).astype(raw.dtype)
        part = np.random.default_rng((seed, world, 1)).integers(0, 3, count).astype(raw.dtype)
        raw = np.where(part < 2, (part << top) + (high << (top - 1)) + (raw >> 2), (high << top) + (raw >> 1))
        raw ^= info(dtype).signed << top  # a signed dtype begins with what an unsigned one has in the middle
    return raw.view(numpy_dtype(dtype))


def _bands(dtype: str, redop: str | None, world: int) -> list[_Band]:
    """Return what ranks bring of floats or bool, by their place at an element, the first ones' first.

    The first alone is the greatest or least; a product has two that are no 1. Of an average only two are no 0, and one
    is most of it: so its loss is more than all that may be rounded.
    """
    limit = exact_limit(dtype)
    most = min(1000, limit)
    low, high = (0, 0) if dtype == "bool" else (1, most // 2), (most // 2 + 1, most)
    if redop is None:
        return [_Band(0, most, world)]
    if redop == "min" or (redop == "product" and dtype == "bool"):
        return [_Band(*low, 1), _Band(*high, world)]
    if redop == "max" or dtype == "bool":
        return [_Band(*high, 1), _Band(*low, world)]
    if redop == "product":
        return [_Band(3, 4, 1), _Band(2, 2, 2), _Band(1, 1, world)]
    if redop == "avg":
        return [_Band(most // 2, 3 * most // 4, 1), _Band(1, most // 4, FEW), _Band(0, 0, world)]
    few = min(world, limit // 2)
    some = _Band(1, min(1000, limit // few), few)
    return [some] if few == world else [some, _Band(0, 0, world)]


def drawn(numbers: NDArray[Any], count: int, generator: np.random.Generator) -> NDArray[Any]:
    """Return `count` of `DRAWS` numbers, each as likely; four come of one step of the generator."""
    values: NDArray[Any] = np.empty(count, numbers.dtype)
    for start in range(0, count, _BLOCK):
        part = values[start : start + _BLOCK]
        raw: NDArray[Any] = generator.bit_generator.random_raw(-(-len(part) // 4))
        which = raw.astype("<u8", copy=False).view("<u2")[: len(part)]
        numbers.take(which, out=part, mode="clip")  # a third of the time of numbers[which]
    return values


@lru_cache(maxsize=4)
def _for_draws(least: int, most: int, dtype: str) -> NDArray[Any]:
    """Return the numbers from `least` to `most` in order, each as often as the others, but for one."""
    many = most - least + 1
    return cast(np.arange(least, most + 1), dtype)[np.arange(DRAWS) * many // DRAWS]


def _places(count: int, world: int, rank: int, seed: int, *, spare: bool) -> NDArray[np.int64]:
    """Return the place of a rank at each element: in each `world` of them it is the first once, in an order of theirs.

    With `spare` one more follows these, where nobody is the first.
    """
    turns = world + spare
    shift = np.random.default_rng((seed, world)).integers(0, world, -(-count // turns))
    turn = np.arange(count) % turns
    places = (rank - turn - np.repeat(shift, turns)[:count]) % world
    return np.where(turn < world, places, world)
