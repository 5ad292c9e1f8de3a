"""How busy places were over time, against sums that know nothing of stretches."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.pages.timeline.activity import Activity, Intervals, stretches

TIMES = st.integers(0, 800).map(lambda eighths: eighths / 8)
ROWS = st.lists(st.tuples(st.integers(0, 2), TIMES, TIMES, st.integers(-3, 5)), max_size=12)


def within(start: float, end: float, low: float, high: float) -> float:
    """Return the share of an interval that lies in a window."""
    return max(0.0, min(end, high) - max(start, low)) / (end - start)


@given(ROWS, st.lists(st.floats(0.5, 99.5), max_size=6))
def test_what_counts_is_spread_from_its_start_to_its_end(
    rows: list[tuple[int, float, float, int]], marks: list[float]
) -> None:
    """Row by row and stretch by stretch; what takes no time counts nothing."""
    edges = np.unique([0.0, *marks, 100.0])
    place, start, end, ns = (np.array([row[column] for row in rows], float) for column in range(4))
    found = Intervals(place.astype(int), start, end, ns).spread(3, edges)
    for row in range(3):
        for stretch, (low, high) in enumerate(pairwise(edges)):
            told = [n * within(s, e, low, high) for p, s, e, n in rows if p == row and e > s]
            assert found[row, stretch] == pytest.approx(sum(told), abs=1e-6)


def sample() -> Activity:
    busy = np.array([[1.0, 0.0, 2.0], [0.0, 4.0, 4.0]])
    return Activity(np.array([0.0, 2.0, 6.0, 10.0]), ("a", "a->b"), np.array([1, 2]), busy, busy / 2)


def test_a_window_cuts_stretches_evenly() -> None:
    """At both ends; one that is larger changes nothing."""
    cut = sample().window(1.0, 8.0)
    assert cut.edges_ns.tolist() == [1.0, 2.0, 6.0, 8.0]
    assert cut.busy_ns.tolist() == [[0.5, 0.0, 1.0], [0.0, 4.0, 2.0]]
    assert cut.waiting_ns.tolist() == [[0.25, 0.0, 0.5], [0.0, 2.0, 1.0]]
    assert sample().window(-5.0, 50.0) == sample()
    assert sample().window(3.0, 4.0).busy_ns.tolist() == [[0.0], [1.0]]


def test_some_of_the_places() -> None:
    """With their servers."""
    one = sample().of([False, True])
    assert (one.places, one.servers.tolist(), one.busy_ns.tolist()) == (("a->b",), [2], [[0.0, 4.0, 4.0]])


def test_marks_are_edges_as_far_as_they_are_not_too_many() -> None:
    """Stretches are equal but for them, and fewer where there are many places."""
    assert stretches(64.0, 1_000_000, [5.5, -1.0, 70.0, 5.5]).tolist() == [*range(6), 5.5, *range(6, 65)]
    assert len(stretches(64.0, 1_000_000, [n + 0.5 for n in range(60)])) == 65 + 32
    assert len(stretches(64.0, 1, [])) == 4097
    assert [len(stretches(64.0, 1000, [], noted)) for noted in (0, 100_000, 9_000_000)] == [1001, 1201, 1501]
