"""Numbers over time: bytes per second of links and memories, requests that are out, what scratchpads hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from kernbench_builtin.pages.timeline.columns import Times
from kernbench_builtin.pages.timeline.lanes import whole_ns
from kernbench_builtin.pages.timeline.timeline import Counter

_ALL_VALUES: Final = 200_000
_MOST_VALUES: Final = 500
_LEAST_VALUES: Final = 50
_NS_PER_S: Final = 1e9

Passages = tuple[Times, Times, Times]
"""From and until when something was on a wire (ns), one after the other, and how many bytes."""


def values_each(counters: int) -> int:
    """Return how many values each of so many counters may have at most."""
    return max(_LEAST_VALUES, min(_MOST_VALUES, _ALL_VALUES // max(1, counters)))


def bandwidth(track: int, wires: Sequence[Passages], most: int) -> Counter:
    """Return the bytes per second of wires together: exact steps, or means over `most` equal spans where those are few.

    A passage has one rate from its begin to its end; what takes no time carries nothing.
    """
    edges = np.unique(np.concatenate([times for starts, ends, _ in wires for times in (starts, ends)]))
    if len(edges) > most:
        edges = np.linspace(edges[0], edges[-1], most)
    total = np.zeros(len(edges))
    for starts, ends, nbytes in wires:
        total += _carried(starts, ends, nbytes, edges)
    rates = np.diff(total) / np.diff(edges) * _NS_PER_S
    return Counter("bandwidth", "B/s", track, edges, np.append(rates, 0.0))


def at_whole_ns(counter: Counter) -> list[tuple[int, float]]:
    """Return the values of a counter with their times in whole ns; those of a bandwidth still sum to the bytes.

    A bandwidth has one value per ns: what it moved before the next of these times, the last of which ends it.
    """
    if counter.name != "bandwidth" or len(counter.values) < 2:
        return [*zip(whole_ns(counter.times_ns), counter.values.tolist(), strict=True)]
    moved = np.append(0.0, np.cumsum(counter.values[:-1] * np.diff(counter.times_ns)))
    times, first = np.unique(whole_ns(counter.times_ns), return_index=True)
    if len(times) == 1:
        times, first = np.append(times, times + 1), np.append(first, -1)
    rates = np.diff(np.append(moved[first[:-1]], moved[-1])) / np.diff(times)
    return [*zip(times.tolist(), [*rates.tolist(), float(counter.values[-1])], strict=True)]


def _carried(starts: Times, ends: Times, nbytes: Times, edges: Times) -> Times:
    """Return how many bytes a wire has carried until each edge."""
    order = np.argsort(starts, kind="stable")
    starts, ends, nbytes = starts[order], np.maximum(ends[order], starts[order]), nbytes[order]
    done = np.cumsum(nbytes)
    times = np.column_stack([starts, ends]).ravel()
    sums = np.column_stack([done - nbytes, done]).ravel()
    found: Times = np.interp(edges, times, sums, left=0.0)
    return found


def outstanding(track: int, begins: Times, ends: Times, most: int) -> Counter:
    """Return how many requests are under way at each time."""
    change = np.concatenate([np.ones(len(begins)), -np.ones(len(ends))])
    at, which = np.unique(np.concatenate([begins, ends]), return_inverse=True)
    values: Times = np.cumsum(np.bincount(which, weights=change, minlength=len(at))).astype(np.float64)
    return _thinned(Counter("outstanding", "requests", track, at, values), most)


def held(track: int, steps_of: Iterable[tuple[float, int]], most: int) -> Counter:
    """Return the bytes that a scratchpad holds, from (ns, bytes) in order; the last of one time counts."""
    table: np.ndarray[Any, Any] = np.array([*steps_of], np.float64).reshape(-1, 2)
    last = np.append(np.diff(table[:, 0]) > 0, True)[: len(table)]
    return _thinned(Counter("scratchpad", "B", track, table[last, 0], table[last, 1]), most)


def _thinned(counter: Counter, most: int) -> Counter:
    """Return a counter with fewer values: of each run of them the highest, at its first time."""
    count = len(counter.values)
    if count <= most:
        return counter
    firsts = np.unique(np.linspace(0, count - 1, most - 1).astype(np.int64))
    values = np.maximum.reduceat(counter.values[:-1], firsts[:-1])
    times = np.append(counter.times_ns[firsts[:-1]], counter.times_ns[-1])
    return Counter(counter.name, counter.unit, counter.track, times, np.append(values, counter.values[-1]))
