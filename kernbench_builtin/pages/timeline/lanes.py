"""Lanes of a track: spans of one lane are apart, or one is a part of the other, as formats of slices ask."""

from __future__ import annotations

import numpy as np

from kernbench_builtin.pages.timeline.columns import Indices, Times
from kernbench_builtin.pages.timeline.timeline import Spans


def lanes_of(spans: Spans) -> Indices:
    """Return the lane of each span on its track, from 0: the first that is free, or whose innermost span it is in.

    A span lies inside another one only where that is its `parent`; with `whole_ns` for all times that stays so.
    """
    found = np.zeros(len(spans), np.int32)
    edges = np.flatnonzero(np.diff(spans.track)) + 1
    for first, last in zip([0, *edges], [*edges, len(spans)], strict=True):
        starts, ends = spans.start_ns[first:last], spans.end_ns[first:last]
        if np.any(starts[1:] < ends[:-1]):
            found[first:last] = _placed(starts.tolist(), ends.tolist(), (spans.parent[first:last] - first).tolist())
    return found


def whole_ns(times: Times) -> list[int]:
    """Round times to whole ns, halves up: what is apart stays apart, and what lies inside stays inside."""
    return np.floor(times + 0.5).astype(np.int64).tolist()  # type: ignore[no-any-return]


def _placed(starts: list[float], ends: list[float], parents: list[int]) -> list[int]:
    """Return the lane of each span of one track, in order of their start."""
    under_way: list[list[int]] = []
    found = []
    for row, start in enumerate(starts):
        lane = 0
        for inside in under_way:
            while inside and ends[inside[-1]] <= start:
                inside.pop()
            if not inside or (inside[-1] == parents[row] and ends[row] <= ends[inside[-1]]):
                break
            lane += 1
        else:
            inside = []
            under_way.append(inside)
        inside.append(row)
        found.append(lane)
    return found
