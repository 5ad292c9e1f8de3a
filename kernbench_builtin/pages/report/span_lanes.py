"""Which lane of its track each span is drawn in: parts below what they are a part of, what overlaps side by side."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import pairwise
from typing import Any, Final

import numpy as np

#: Lanes of a track; what would need more shares the last.
MOST: Final = 8


def lanes(
    track: np.ndarray[Any, Any],
    start: np.ndarray[Any, Any],
    end: np.ndarray[Any, Any],
    parent: np.ndarray[Any, Any],
) -> np.ndarray[Any, Any]:
    """Return the lane of each span, from 0; spans stand in the order of a timeline."""
    lane = np.zeros(len(track), np.uint8)
    tops = np.flatnonzero(parent < 0)
    bounds = [*np.searchsorted(track[tops], np.unique(track[tops])), len(tops)]
    for begin, stop in pairwise(bounds):
        rows = tops[begin:stop]
        if np.any(start[rows][1:] < np.maximum.accumulate(end[rows])[:-1]):
            lane[rows] = _side_by_side(start[rows], end[rows])
    inner = np.flatnonzero(parent >= 0)
    for _ in range(MOST):  # each round is one level further down
        deeper = np.minimum(lane[parent[inner]] + 1, MOST - 1)
        if np.array_equal(deeper, lane[inner]):
            break
        lane[inner] = deeper
    return lane


def _side_by_side(start: np.ndarray[Any, Any], end: np.ndarray[Any, Any]) -> list[int]:
    """Put each of several intervals, by their start, into the first lane that is free then."""
    free = list(range(MOST - 1))
    busy: list[tuple[float, int]] = []
    found = []
    for begin, stop in zip(start.tolist(), end.tolist(), strict=True):
        while busy and busy[0][0] <= begin:
            heappush(free, heappop(busy)[1])
        lane = heappop(free) if free else MOST - 1
        if lane < MOST - 1:
            heappush(busy, (stop, lane))
        found.append(lane)
    return found
