"""Which points of several objectives are best: the Pareto front, and the fronts behind it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]
_Ranks = npt.NDArray[np.int64]


def front_ranks(values: npt.ArrayLike, maximise: Sequence[bool] = ()) -> _Ranks:
    """Return which front each point is on: 1 is the Pareto front, 2 where only points of that are better, and so on.

    `values` has a row for each point and a column for each objective, small is good but where `maximise`. A point
    dominates another that is nowhere better and somewhere worse; equal ones are on one front. Rows with a NaN get 0.
    """
    found = _minimised(values, maximise)
    ranks = np.zeros(len(found), np.int64)
    left = np.flatnonzero(~np.isnan(found).any(axis=1))
    rank = 0
    while left.size:
        rank += 1
        on = _front(found[left])
        ranks[left[on]] = rank
        left = left[~on]
    return ranks


def pareto_front(values: npt.ArrayLike, maximise: Sequence[bool] = ()) -> npt.NDArray[np.bool_]:
    """Return which points no other one dominates; a point with a NaN is none of them."""
    found = _minimised(values, maximise)
    known = ~np.isnan(found).any(axis=1)
    on = np.zeros(len(found), np.bool_)
    on[known] = _front(found[known])
    return on


def best_first(values: npt.ArrayLike, maximise: Sequence[bool] = ()) -> _Ranks:
    """Return the points' numbers, best first; those with a NaN are left out.

    Of several objectives the fronts come in order, and on one front those points first that are farthest from their
    neighbours, so that the first of them span it. Of one objective that is its order. Ties keep the order given.
    """
    found = _minimised(values, maximise)
    ranks = front_ranks(found)
    if found.shape[1] == 1:
        known = np.flatnonzero(ranks)
        return known[np.argsort(found[known, 0], kind="stable")]
    order: list[int] = []
    for rank in range(1, int(ranks.max(initial=0)) + 1):
        of_rank = np.flatnonzero(ranks == rank)
        order += of_rank[np.argsort(-_crowding(found[of_rank]), kind="stable")].tolist()
    return np.asarray(order, np.int64)


def _minimised(values: npt.ArrayLike, maximise: Sequence[bool]) -> _Floats:
    found = np.asarray(values, np.float64)
    if found.ndim == 1:
        found = found[:, np.newaxis]
    return np.where(np.asarray(maximise, np.bool_), -found, found) if len(maximise) else found


def _front(found: _Floats) -> npt.NDArray[np.bool_]:
    """Return which rows no other one dominates, by comparing each with those that were kept before it.

    In lexical order a row is dominated only by one before it.
    """
    order = np.lexsort(found.T[::-1]) if found.size else np.arange(len(found))
    on = np.zeros(len(found), np.bool_)
    kept = np.empty_like(found)
    count = 0
    for at in order:
        row, others = found[at], kept[:count]
        if not ((others <= row).all(axis=1) & (others < row).any(axis=1)).any():
            kept[count] = row
            count += 1
            on[at] = True
    return on


def _crowding(front: _Floats) -> _Floats:
    """Return how far apart the neighbours of each point of a front are, in parts of its extent; inf at its ends."""
    distance = np.zeros(len(front))
    for column in front.T:
        order = np.argsort(column, kind="stable")
        ends = column[order]
        extent = ends[-1] - ends[0]
        if not extent > 0 or not np.isfinite(extent):
            continue
        distance[order[[0, -1]]] = np.inf
        distance[order[1:-1]] += (ends[2:] - ends[:-2]) / extent
    return distance
