"""Lanes: spans of one lane are apart or inside their parent, and a span takes the first lane that it may."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.pages.timeline import lanes_of, whole_ns
from kernbench_builtin.pages.timeline.span_rows import SpanRows
from kernbench_builtin.pages.timeline.timeline import Spans

Drawn = list[tuple[int, int, int, int]]
drawn = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(0, 6), st.integers(-1, 20)), min_size=1, max_size=14
)


def spans_of(rows: Drawn) -> Spans:
    """Make spans of (track, start, took, row of the parent); a parent is one that it lies within, or none."""
    made = SpanRows()
    for at, (track, start, took, parent) in enumerate(rows):
        over = rows[parent] if 0 <= parent < at else None
        inside = over is not None and over[0] == track and over[1] <= start and start + took <= over[1] + over[2]
        made.add(track, made.name("s"), start, start + took, parent=parent if inside else -1)
    return made.finish(np.arange(3))[0]


def first_lanes(spans: Spans) -> list[int]:
    """Lay every span against all before it: what is not over on a lane, and the last begun of that."""
    columns = (spans.track, spans.start_ns, spans.end_ns, spans.parent)
    rows = [*zip(*(column.tolist() for column in columns), strict=True)]
    found: list[int] = []
    for at, (track, start, end, parent) in enumerate(rows):
        lane = 0
        while True:
            going = [
                other for other in range(at)
                if rows[other][0] == track and found[other] == lane and rows[other][2] > start
            ]  # fmt: skip
            if not going or (going[-1] == parent and end <= rows[parent][2]):
                break
            lane += 1
        found.append(lane)
    return found


@given(drawn)
def test_a_span_takes_the_first_lane_that_it_may(rows: Drawn) -> None:
    """One that is free, or on which nothing goes on but what it is a part of, innermost first."""
    spans = spans_of(rows)
    assert lanes_of(spans).tolist() == first_lanes(spans)


@given(drawn)
def test_spans_of_a_lane_are_apart_or_one_in_the_other(rows: Drawn) -> None:
    """As formats of slices ask; in whole ns, too, as these have."""
    spans = spans_of(rows)
    lanes, starts, ends = lanes_of(spans), whole_ns(spans.start_ns / 3), whole_ns(spans.end_ns / 3)
    for one in range(len(spans)):
        for other in range(one + 1, len(spans)):
            if (spans.track[one], lanes[one]) == (spans.track[other], lanes[other]):
                apart = ends[one] <= starts[other] or ends[other] <= starts[one]
                assert apart or (starts[one] <= starts[other] and ends[other] <= ends[one])


def test_three_at_once_need_three_lanes_and_a_part_none() -> None:
    """Tracks are counted each from 0; who ends as another begins leaves it the lane."""
    rows = [(0, 0, 10, -1), (0, 2, 4, -1), (0, 3, 9, -1), (0, 4, 2, 0), (0, 6, 3, -1), (0, 10, 1, -1), (1, 3, 9, -1)]
    assert lanes_of(spans_of(rows)).tolist() == [0, 1, 2, 0, 1, 0, 0]


def test_no_spans_have_no_lanes() -> None:
    """A timeline may be empty."""
    assert lanes_of(SpanRows().finish(np.arange(0))[0]).tolist() == []


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_whole_times_keep_their_order(one: float, other: float) -> None:
    """Halves go up: a time is at most half an ns off, and never behind one that it was before."""
    a, b = whole_ns(np.array([one, other]))
    assert -0.5 < a - one <= 0.5 and (a - b) * (one - other) >= 0


def test_halves_go_up() -> None:
    """Not to the even one, where a span of 1 ns would have none or two."""
    assert whole_ns(np.array([0.5, 1.5, 2.5, 2.4999, math.nextafter(2.5, 3)])) == [1, 2, 3, 2, 3]
