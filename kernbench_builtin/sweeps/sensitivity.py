"""What each parameter of a sweep does to an objective: how much of its variance, which way, and from where to where."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from attrs import frozen

from kernbench_builtin.sweeps.expressions.quantities import UnitNumber, as_known

_Floats = npt.NDArray[np.float64]
#: How many groups the values of a parameter are put into, where there are more of them.
_MOST_GROUPS = 8


@frozen
class Sensitivity:
    """What one parameter does to one objective over `points` points.

    `share` is the part of the variance between the means of its `groups`, from 0 to 1: over a full grid, its main
    effect, and what is missing to 1 over all parameters are interactions. `correlation` is Spearman's, of numbers,
    from -1 (larger is smaller) to 1. `lowest` and `highest` are the means of the groups that have them, at the values
    `lowest_at` and `highest_at`, of which a group of several has the middle one. NaN is what cannot be told: of a
    parameter or an objective with one value only, of a correlation of words, and of a share where each point has a
    group of its own.
    """

    parameter: str
    objective: str
    points: int
    groups: int
    share: float
    correlation: float
    lowest: float
    lowest_at: object
    highest: float
    highest_at: object


def sensitivities(
    values: Sequence[Mapping[str, object]], objectives: Mapping[str, npt.ArrayLike]
) -> tuple[Sensitivity, ...]:
    """Return a `Sensitivity` for each parameter and each objective, of an objective the largest share first.

    `values` are those of each point, `objectives` a number for each point, NaN where it has none.
    """
    names = list(dict.fromkeys(name for each in values for name in each))
    found: list[Sensitivity] = []
    for objective, given in objectives.items():
        numbers = np.asarray(given, np.float64)
        of = [_sensitivity(name, objective, [each.get(name) for each in values], numbers) for name in names]
        found += sorted(of, key=lambda each: -each.share if each.share == each.share else math.inf)
    return tuple(found)


def average_ranks(numbers: npt.ArrayLike) -> _Floats:
    """Return the rank of each number, from 1; equal ones share the mean of theirs."""
    found = np.asarray(numbers, np.float64)
    _, group, counts = np.unique(found, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean: _Floats = (last - (counts - 1) / 2)[group.reshape(-1)]
    return mean


def spearman(left: npt.ArrayLike, right: npt.ArrayLike) -> float:
    """Return Spearman's rank correlation of two lists of numbers, from -1 to 1; pairs with a NaN are left out.

    NaN where fewer than two pairs are left, or one list has one value only.
    """
    a, b = np.asarray(left, np.float64), np.asarray(right, np.float64)
    known = ~(np.isnan(a) | np.isnan(b))
    if known.sum() < 2:
        return math.nan
    first, second = (ranks - ranks.mean() for ranks in (average_ranks(a[known]), average_ranks(b[known])))
    scale = math.sqrt(float(first @ first) * float(second @ second))
    return max(-1.0, min(1.0, float(first @ second) / scale)) if scale else math.nan


def _sensitivity(name: str, objective: str, cells: Sequence[object], numbers: _Floats) -> Sensitivity:
    kept = [at for at, cell in enumerate(cells) if cell is not None and not math.isnan(numbers[at])]
    left, of = [cells[at] for at in kept], numbers[kept]
    scale = _numbers(left)
    group, middles = _grouped(left, scale)
    counts = np.bincount(group, minlength=len(middles)) if kept else np.zeros(0, np.int64)
    if len(middles) < 2:
        nan = math.nan
        return Sensitivity(name, objective, len(kept), len(middles), nan, nan, nan, None, nan, None)
    means = np.bincount(group, weights=of, minlength=len(middles)) / counts
    total = float(((of - of.mean()) ** 2).sum())
    between = float((counts * (means - of.mean()) ** 2).sum())
    told = total > 1e-24 * max(1.0, float(np.abs(of).max())) ** 2 * len(of) and counts.max() > 1
    low, high = int(means.argmin()), int(means.argmax())
    return Sensitivity(
        parameter=name,
        objective=objective,
        points=len(kept),
        groups=len(middles),
        share=min(1.0, between / total) if told else math.nan,
        correlation=math.nan if scale is None else spearman(scale, of),
        lowest=float(means[low]),
        lowest_at=middles[low],
        highest=float(means[high]),
        highest_at=middles[high],
    )


def _numbers(cells: Sequence[object]) -> _Floats | None:
    """Return the values as numbers, of quantities without their unit; None where one is none."""
    known = [as_known(cell) if isinstance(cell, bool | int | float | str) else None for cell in cells]
    plain = [each.value if isinstance(each, UnitNumber) else each for each in known]
    if not plain or any(isinstance(each, bool) or not isinstance(each, int | float) for each in plain):
        return None
    return np.asarray(plain, np.float64)


def _grouped(cells: Sequence[object], scale: _Floats | None) -> tuple[npt.NDArray[np.int64], list[object]]:
    """Return the number of the group of each value, and a value that stands for each group.

    Each value is a group; of more than `_MOST_GROUPS` numbers neighbours are put together, as many into each.
    """
    if scale is None:
        distinct = {repr(cell): cell for cell in cells}
        numbers = {text: at for at, text in enumerate(distinct)}
        return np.asarray([numbers[repr(cell)] for cell in cells], np.int64), list(distinct.values())
    different, first, group = np.unique(scale, return_index=True, return_inverse=True)
    group = group.reshape(-1).astype(np.int64)
    if len(different) <= _MOST_GROUPS:
        return group, [cells[at] for at in first]
    parts = np.array_split(np.arange(len(different)), _MOST_GROUPS)
    part_of = np.concatenate([np.full(len(part), at) for at, part in enumerate(parts)])
    return part_of[group].astype(np.int64), [cells[first[part[len(part) // 2]]] for part in parts]
