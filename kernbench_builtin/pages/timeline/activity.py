"""How busy every place was, and how many messages waited there, in each of many short stretches of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from kernbench_builtin.pages.timeline.columns import F4, F8, I4, Amounts, FixedColumns, Indices, Times

#: Stretches of a run; fewer where there are so many places that all of them together would be large.
_MOST_STRETCHES: Final = 4096
_LEAST_STRETCHES: Final = 64
_LEAST_CELLS: Final = 1_000_000
_MOST_CELLS: Final = 1_500_000
#: So many for each time that was noted, so that making them takes a small part of what noting took.
_CELLS_A_NOTE: Final = 12


@attrs.frozen(repr=False)
class Activity(FixedColumns):
    """Say of each of `places` (nodes, wires, channels) how busy it was from `edges_ns[i]` to `edges_ns[i + 1]`.

    `busy_ns[place, i]` is for how long it was busy then; a place that serves several messages at once, as `servers`
    says, adds them up. `waiting_ns[place, i]` is for how long messages waited there, together. What took its time from
    one time to another, as a message that a wire carries as slowly as it comes, is spread evenly between them. Begins
    and ends of launches are edges. Of each place the stretches sum to what the simulator counted.
    """

    edges_ns: Times = attrs.field(**F8)
    places: tuple[str, ...]
    servers: Indices = attrs.field(**I4)
    busy_ns: Amounts = attrs.field(**F4)
    waiting_ns: Amounts = attrs.field(**F4)

    def window(self, from_ns: float, to_ns: float) -> Activity:
        """Return what is known of a window; stretches that it cuts are taken to be even."""
        edges = self.edges_ns
        low, high = max(from_ns, float(edges[0])), min(to_ns, float(edges[-1]))
        kept = np.concatenate([[low], edges[(edges > low) & (edges < high)], [high]])
        tables = (_between(edges, table, kept) for table in (self.busy_ns, self.waiting_ns))
        return Activity(kept, self.places, self.servers, *tables)

    def of(self, wanted: Sequence[bool]) -> Activity:
        """Return some of the places."""
        rows = np.flatnonzero(wanted)
        places = tuple(self.places[row] for row in rows)
        return Activity(self.edges_ns, places, self.servers[rows], self.busy_ns[rows], self.waiting_ns[rows])

    def shares(self, row: int, edges_ns: Times) -> Times:
        """Return how busy a place was between other edges, 0 to 1 of all that it serves at once; 0 of what is unknown.

        Stretches that the edges cut are taken to be even.
        """
        within = np.clip(edges_ns, self.edges_ns[0], self.edges_ns[-1])
        sums = np.concatenate([[0.0], np.cumsum(self.busy_ns[row], dtype=np.float64)])
        busy = np.diff(np.interp(within, self.edges_ns, sums))
        found: Times = np.maximum(busy, 0.0) / (np.diff(edges_ns) * self.servers[row])
        return found

    def __repr__(self) -> str:
        return f"<Activity of {len(self.places)} places in {len(self.edges_ns) - 1} stretches>"


def _between(edges: Times, table: Amounts, others: Times) -> Amounts:
    """Return what lies between other edges, each stretch taken to be even."""
    sums = np.concatenate([np.zeros((len(table), 1)), np.cumsum(table, axis=1, dtype=np.float64)], axis=1)
    at = np.clip(np.searchsorted(edges, others, side="right") - 1, 0, len(edges) - 2)
    share = (others - edges[at]) / (edges[at + 1] - edges[at])
    found: Amounts = np.diff(sums[:, at] + (sums[:, at + 1] - sums[:, at]) * share, axis=1)
    return found


def stretches(total: float, places: int, marks: Sequence[float], noted: int = 0) -> Times:
    """Return edges of equal stretches of a run of `total` ns, and at `marks` too, as far as these are not too many.

    They are more where more times of the `places` were `noted`.
    """
    cells = min(_MOST_CELLS, max(_LEAST_CELLS, _CELLS_A_NOTE * noted))
    count = int(min(_MOST_STRETCHES, max(_LEAST_STRETCHES, cells // max(1, places))))
    inside = [mark for mark in dict.fromkeys(marks) if 0.0 < mark < total][: count // 2]
    found: Times = np.unique(np.concatenate([np.linspace(0.0, total, count + 1), inside]))
    return found


@attrs.frozen(eq=False)
class Intervals:
    """Times of places, one row each: the number of the place, from and until when, and for how much that counts."""

    place: Indices
    start_ns: Times
    end_ns: Times
    ns: Times

    def spread(self, places: int, edges: Times) -> Times:
        """Return how much counts in each stretch of each place; each row spread evenly from its start to its end."""
        count, width = len(edges) - 1, np.diff(edges)
        start, end = np.clip(self.start_ns, edges[0], edges[-1]), np.clip(self.end_ns, edges[0], edges[-1])
        some = (end > start) & (self.ns != 0.0)
        place, start, end = self.place[some], start[some], end[some]
        rate = self.ns[some] / (self.end_ns - self.start_ns)[some]
        first = np.clip(np.searchsorted(edges, start, side="right") - 1, 0, count - 1)
        last = np.clip(np.searchsorted(edges, end, side="left") - 1, 0, count - 1)
        several = last > first
        begun = place * count + first
        ended, of_several = (place * count + last)[several], rate[several]
        # in the stretches that it begins and ends in, and as a rate from the one after that on, to the one before this
        begin, finish = rate * (np.minimum(end, edges[first + 1]) - start), of_several * (end - edges[last])[several]
        table = _summed(np.concatenate([begun, ended]), np.concatenate([begin, finish]), places, count)
        longer = (last > first + 1)[several]
        if longer.any():
            at = np.concatenate([begun[several][longer] + 1, ended[longer]])
            rates = np.concatenate([of_several[longer], -of_several[longer]])
            rows, inverse = np.unique(at // count, return_inverse=True)
            held = _summed(inverse * count + at % count, rates, len(rows), count)
            np.cumsum(held, axis=1, out=held)
            held[np.abs(held) < _NOTHING] = 0.0
            held *= width
            table[rows] += held
        return table


#: A rate that is left over by rounding.
_NOTHING: Final = 1e-9


def _summed(at: Indices, amounts: Times, rows: int, count: int) -> Times:
    """Return a table of sums, by the number of each cell."""
    found: Times = np.bincount(at, weights=amounts, minlength=rows * count).astype(np.float64, copy=False)
    return found.reshape(rows, count)


def joined(several: Sequence[Intervals]) -> Intervals:
    """Return all rows together."""
    names = [field.name for field in attrs.fields(Intervals)]
    return Intervals(*(np.concatenate([getattr(each, name) for each in several]) for name in names))
