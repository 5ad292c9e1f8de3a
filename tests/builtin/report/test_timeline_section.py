"""What the timeline's script is given: spans in lanes, use over time, own time of lines, no more than a page holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.pages.report import timeline_section
from kernbench_builtin.pages.report.busy_bins import busy_bins, shares
from kernbench_builtin.pages.report.run_page import RunPage
from kernbench_builtin.pages.report.span_lanes import MOST, lanes
from kernbench_builtin.pages.timeline import Activity, Timeline, Track
from kernbench_builtin.pages.timeline.timeline import Flows, Spans
from tests.builtin.report.pages import result

INTERVALS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=12)


def timeline(rows: Sequence[tuple[int, float, float, int, int]], kinds: Sequence[str]) -> Timeline:
    """Return a timeline of spans (track, start, end, line, parent) on tracks of some kinds."""
    columns: list[Any] = [np.array(column) for column in zip(*rows, strict=True)] if rows else [np.zeros(0)] * 5
    track, start, end, line, parent = columns
    none = np.full(len(rows), -1)
    spans = Spans(track, np.zeros(len(rows), int), start, end, line, none, none, parent, none)
    flows = Flows(*(np.zeros(0) for _ in range(5)))
    tracks = tuple(Track(i, -1, f"t{i}", kind, f"n{i}") for i, kind in enumerate(kinds))
    return Timeline(100.0, tracks, ("name",), ("/a/b.py:3", "/a/b.py:4"), ("x = 1", "y = 2"), spans, (), flows)


@given(INTERVALS)
def test_spans_of_one_lane_do_not_overlap(given_spans: list[tuple[int, int]]) -> None:
    """Nothing overlaps below the last lane, and no lane is used while one above it is free."""
    ordered = sorted(((s, s + n) for s, n in given_spans), key=lambda each: (each[0], -each[1]))
    start, end = (np.array([each[i] for each in ordered], float) for i in (0, 1))
    found = lanes(np.zeros(len(ordered), int), start, end, np.full(len(ordered), -1)).tolist()
    for i, (begin, _) in enumerate(ordered):
        taken = {found[j] for j in range(i) if ordered[j][1] > begin}
        free = [lane for lane in range(MOST - 1) if lane not in taken]
        assert found[i] == (free[0] if free else MOST - 1)


def test_parts_stand_below_what_they_are_part_of() -> None:
    """However deep, as long as there are lanes."""
    number = 12
    parent = np.arange(-1, number - 1)
    zeros = np.zeros(number)
    assert lanes(zeros.astype(int), zeros, zeros + 9, parent).tolist() == [min(i, MOST - 1) for i in range(number)]


@given(INTERVALS)
def test_shares_are_what_counting_moments_gives(given_spans: list[tuple[int, int]]) -> None:
    """In each stretch, the moments of each interval, one by one."""
    start = np.array([s for s, _ in given_spans], float)
    end = np.array([s + n for s, n in given_spans], float)
    found = shares(start, end, np.arange(0.0, 81.0, 8.0))
    for index, share in enumerate(found):
        moments = sum(s <= t < s + n for s, n in given_spans for t in range(8 * index, 8 * index + 8))
        assert share == pytest.approx(moments / 8)


def test_what_lies_within_another_span_is_not_counted_twice() -> None:
    """A part of a span adds nothing; other kinds of tracks are left out."""
    given_rows = [(0, 0.0, 50.0, -1, -1), (0, 10.0, 20.0, -1, 0), (1, 0.0, 100.0, -1, -1)]
    found = busy_bins(timeline(given_rows, ["unit", "host"]), ("unit",))
    rows = found["rows"].reshape(-1, found["bins"])
    assert found["tracks"].tolist() == [0]
    assert ((rows[0] / 255) ** 2).mean() == pytest.approx(0.5, abs=1e-3)


def test_a_track_of_a_place_is_as_busy_as_was_counted() -> None:
    """One of two servers for half of the time is a quarter, however long something was there."""
    spans_of = [(0, 0.0, 100.0, -1, -1), (1, 0.0, 100.0, -1, -1), (2, 0.0, 100.0, -1, -1)]
    busy = np.array([[10.0, 40.0], [1.0, 1.0]], np.float32)
    edges = np.array([0.0, 25.0, 75.0])
    activity = Activity(edges, ("n1", "n2"), np.array([2, 1], np.int32), busy, np.zeros_like(busy))
    made = attrs.evolve(timeline(spans_of, ["unit", "unit", "kernel"]), activity=activity)
    found = busy_bins(made, ("unit", "kernel"))
    rows = (found["rows"].reshape(-1, found["bins"]) / 255) ** 2
    quarters = rows.reshape(3, 4, -1).mean(axis=2)
    assert quarters[1] == pytest.approx([10 / 50, 40 / 100, 40 / 100, 0.0], abs=5e-3)
    assert quarters[0] == pytest.approx(np.ones(4)) and quarters[2] == pytest.approx(np.ones(4))


def test_the_time_of_a_line_is_without_that_of_lines_within_it() -> None:
    """A call's own lines take their time from the line that called."""
    rows = [(0, 0.0, 90.0, -1, -1), (0, 10.0, 50.0, 0, 0), (0, 20.0, 30.0, 1, 1), (1, 0.0, 9.0, 0, -1)]
    page = RunPage("r", result(), timeline=timeline(rows, ["kernel", "unit"]))
    assert timeline_section.TIMELINE.data is not None
    data = timeline_section.TIMELINE.data(page)
    assert data is not None
    assert (data["spans"]["inner"] * data["tick"]).tolist() == [0.0, 10.0, 0.0, 0.0]
    assert data["lines"][1] == {"file": "/a/b.py", "number": 4, "text": "y = 2"}
    assert (data["spans"]["start"] * data["tick"]).tolist() == [0.0, 10.0, 10.0, 0.0]  # from the one before


def test_a_timeline_says_what_is_not_in_it() -> None:
    """Lines of kernels at a coarse level; all but a window that it was cut to."""
    rows = [(0, 0.0, 90.0, -1, -1)]
    whole = timeline(rows, ["host"])
    coarse = timeline_section.TIMELINE.html(RunPage("r", result(), timeline=whole.level("launch")))
    assert "It does not go down to the lines of kernels" in coarse and "icicle" not in coarse
    for cut, told in (((20.0, 60.0), "It is known from 20 ns to 60 ns only."), ((0.0, 100.0), None)):
        page = timeline_section.TIMELINE.html(RunPage("r", result(), timeline=whole.window(*cut)))
        assert ("It is known" in page) == (told is not None) and (told or "") in page
        assert "icicle" in page


def test_more_spans_than_a_page_holds_leave_the_finest_levels_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """They stand as use over time, and the page says so; tracks and their numbers stay."""
    rows = [(0, 1.0, 2.0, -1, -1), *((1, float(i), i + 0.5, -1, -1) for i in range(9))]
    given_timeline = timeline(rows, ["unit", "wire"])
    page = RunPage("r", result(), timeline=given_timeline)
    assert timeline_section.shown(given_timeline) is given_timeline
    monkeypatch.setattr(timeline_section, "MOST_SPANS", 5)
    assert "wires stand as use over time only" in timeline_section.TIMELINE.html(page)
    assert timeline_section.TIMELINE.data is not None
    data = timeline_section.TIMELINE.data(page)
    assert data is not None
    assert [track[2] for track in data["tracks"]] == ["unit", "wire"]
    assert data["spans"]["track"].tolist() == [0]
    assert data["use"]["tracks"].tolist() == [0, 1]
