"""How busy each track was in each of many equal stretches of a run, in so few bytes that a page can hold it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kernbench_builtin.pages.timeline import LEVELS

if TYPE_CHECKING:
    from kernbench_builtin.pages.timeline import Timeline

#: Stretches of a run; fewer where a machine has so many places that all of them together would be large.
_BINS: Final = 4096
_LEAST_BINS: Final = 64
_MOST_CELLS: Final = 8_000_000
#: The kinds of tracks of places that the simulator counts.
_COUNTED: Final = LEVELS[LEVELS.index("unit") :]


def busy_bins(timeline: Timeline, kinds: Collection[str]) -> Mapping[str, Any]:
    """Return the tracks of some kinds that did anything and, row by row, the root of how busy they were, 0 to 255.

    Of units, channels and wires that is what the simulator counted, a share of all that they serve at once; of other
    tracks it is what their spans cover, without what lies within another one. The root keeps a hundredth of a percent
    apart from nothing.
    """
    spans = timeline.spans
    wanted = np.array([track.kind in kinds for track in timeline.tracks], bool)
    top = (spans.parent < 0) & wanted[spans.track] if len(spans) else np.zeros(0, bool)
    track, start, end = spans.track[top], spans.start_ns[top], spans.end_ns[top]
    used = np.unique(track)
    bins = int(min(_BINS, max(_LEAST_BINS, _MOST_CELLS // max(1, len(used)))))
    edges = np.linspace(0.0, timeline.total_ns or 1.0, bins + 1)
    rows = np.zeros((len(used), bins), np.uint8)
    bounds = np.searchsorted(track, [*used, len(timeline.tracks)])
    activity = timeline.activity
    places = {} if activity is None else {place: row for row, place in enumerate(activity.places)}
    for row, (begin, stop) in enumerate(pairwise(bounds)):
        one = timeline.tracks[used[row]]
        if activity is not None and one.node in places and one.kind in _COUNTED:
            found = activity.shares(places[one.node], edges)
        else:
            found = shares(start[begin:stop], end[begin:stop], edges)
        rows[row] = np.rint(255 * np.sqrt(np.minimum(found, 1.0)))
    return {"tracks": used.astype(np.int32), "bins": bins, "rows": rows}


def shares(start: np.ndarray[Any, Any], end: np.ndarray[Any, Any], edges: np.ndarray[Any, Any]) -> Any:
    """Return how much of each stretch between `edges` intervals cover; more than 1 where they overlap."""
    covered = _elapsed(np.sort(start), edges) - _elapsed(np.sort(end), edges)
    return np.maximum(np.diff(covered) / np.diff(edges), 0.0)


def _elapsed(times: np.ndarray[Any, Any], edges: np.ndarray[Any, Any]) -> Any:
    """Return, at each edge, how long ago the times before it were, together."""
    before = np.searchsorted(times, edges)
    sums = np.concatenate([[0.0], np.cumsum(times)])
    return before * edges - sums[before]
