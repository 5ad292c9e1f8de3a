"""Intervals of time in columns: how long any of them lasts, and which began late."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def late_among(
    start: npt.NDArray[Any], end: npt.NDArray[Any], keep: npt.NDArray[np.bool_], since: float
) -> npt.NDArray[np.bool_]:
    """Return which intervals are of those rows of them, one behind the other, that began after a time."""
    found = np.zeros(len(start), bool)
    at = np.flatnonzero(keep)
    at = at[np.argsort(start[at], kind="stable")]
    if not len(at):
        return found
    reach = np.maximum.accumulate(end[at])
    first = np.concatenate([[True], start[at][1:] > reach[:-1]])
    found[at] = (start[at][first] > since)[np.cumsum(first) - 1]
    return found


def time_of_any(start: npt.NDArray[Any], end: npt.NDArray[Any], keep: npt.NDArray[np.bool_]) -> float:
    """Return for how long any of some intervals lasts."""
    start, end = start[keep], end[keep]
    order = np.argsort(start)
    start, end = start[order], np.maximum.accumulate(end[order])
    before = np.concatenate([[-np.inf], end[:-1]]) if len(end) else end
    return float(np.sum(np.maximum(0.0, end - np.maximum(start, before))))
