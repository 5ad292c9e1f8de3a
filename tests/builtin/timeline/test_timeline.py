"""A timeline is cut by time and by level, and nothing of what is left changes its meaning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.pages.timeline.levels import LEVELS, PLACE
from kernbench_builtin.pages.timeline.span_rows import SpanRows
from kernbench_builtin.pages.timeline.timeline import FLOWS, Counter, Flows, Timeline, Track, op_number, op_of
from kernbench_core.errors import UsageError

TOTAL = 100.0
KINDS = (PLACE, *LEVELS)


def made(spans: list[tuple[int, float, float, int]], arrows: list[tuple[int, int]] = ()) -> Timeline:  # type: ignore[assignment]
    """Make a timeline of one track of each kind, in a row below a place; a span is (track, start, end, op)."""
    tracks = tuple(Track(at, 0 if at else -1, kind, kind, kind) for at, kind in enumerate(KINDS))
    rows = SpanRows()
    for track, start, end, op in spans:
        rows.add(track, rows.name(f"span {op}"), start, end, op=op, nbytes=op)
    done, number = rows.finish(np.arange(len(tracks)))
    ends = [(int(number[a]), int(number[b])) for a, b in arrows]
    flows = Flows(
        np.full(len(ends), FLOWS.index("send")),
        np.array([a for a, _ in ends]),
        np.array([done.start_ns[a] for a, _ in ends]),
        np.array([b for _, b in ends]),
        np.array([done.end_ns[b] for _, b in ends]),
    )
    counters = tuple(
        Counter(name, "B", KINDS.index(kind), np.array([10.0, 20.0, 90.0]), np.array([4.0, 2.0, 0.0]))
        for name, kind in (("bandwidth", "wire"), ("scratchpad", "unit"))
    )
    return Timeline(TOTAL, tracks, tuple(rows.names), (), (), done, counters, flows)


def listed(timeline: Timeline) -> set[tuple[str, str, float, float, int]]:
    """Say what a timeline shows, in words: none of its numbers of rows, names or tracks."""
    spans = timeline.spans
    return {
        (timeline.tracks[track].name, timeline.names[name], start, end, op)
        for track, name, start, end, op in zip(
            *(getattr(spans, column).tolist() for column in ("track", "name", "start_ns", "end_ns", "op")), strict=True
        )
    }


def arrows(timeline: Timeline) -> Iterator[tuple[int, int]]:
    """Return arrows by the ops of their spans."""
    flows, op = timeline.flows, timeline.spans.op
    return zip(op[flows.from_span].tolist(), op[flows.to_span].tolist(), strict=True)


def area(counter: Counter) -> float:
    return float(np.sum(counter.values[:-1] * np.diff(counter.times_ns)))


@st.composite
def timelines(draw: Any) -> tuple[Timeline, list[tuple[int, float, float, int]], list[tuple[int, int]]]:
    times = st.tuples(st.integers(0, 99), st.integers(0, 30)).map(lambda t: (float(t[0]), float(min(100, sum(t)))))
    drawn = draw(st.lists(st.tuples(st.integers(1, len(KINDS) - 1), times), min_size=1, max_size=20))
    spans = [(track, *when, number) for number, (track, when) in enumerate(drawn)]
    pairs = st.tuples(*[st.integers(0, len(spans) - 1)] * 2)
    chosen = draw(st.lists(pairs, max_size=6))
    return made(spans, chosen), spans, chosen


@given(timelines(), st.integers(0, 99), st.integers(1, 60))
def test_a_window_holds_what_lies_in_it_even_in_part(drawn: Any, start: int, length: int) -> None:
    """Whole spans, by a definition that looks at each by itself; arrows where both ends are there."""
    timeline, spans, chosen = drawn
    end = start + length
    found = timeline.window(float(start), float(end))
    wanted = {
        op: (KINDS[track], f"span {op}", begin, until, op)
        for track, begin, until, op in spans
        if (begin < end and until > start) or (begin == until and start <= begin < end)
    }
    assert listed(found) == set(wanted.values())
    assert sorted(arrows(found)) == sorted((a, b) for a, b in chosen if a in wanted and b in wanted)
    for counter in found.counters:
        assert area(counter) == sum(4 if time < 20 else 2 for time in range(max(10, start), min(end, 90)))


@given(timelines(), st.sampled_from(LEVELS))
def test_a_level_holds_what_is_as_coarse_or_coarser(drawn: Any, level: str) -> None:
    """And no track on which, and below which, there is nothing."""
    timeline, spans, chosen = drawn
    found = timeline.level(level)
    wanted = {op for track, _, _, op in spans if LEVELS.index(KINDS[track]) <= LEVELS.index(level)}
    assert {op for *_, op in listed(found)} == wanted
    assert sorted(arrows(found)) == sorted((a, b) for a, b in chosen if a in wanted and b in wanted)
    used = {name for name, *_ in listed(found)} | {found.tracks[counter.track].name for counter in found.counters}
    assert {track.name for track in found.tracks if track.kind != PLACE} == used
    assert {counter.name for counter in found.counters} == {
        name
        for name, least in (("bandwidth", "wire"), ("scratchpad", "unit"))
        if LEVELS.index(least) <= LEVELS.index(level)
    }
    assert found.depth == level
    assert [track.id for track in found.tracks] == list(range(len(found.tracks)))
    assert all(track.parent < track.id for track in found.tracks)


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [(5.0, 5.0, "5 ns..5 ns"), (7.0, 3.0, "7 ns..3 ns"), (100.0, 200.0, "100 ns..200 ns"), (-5.0, 0.0, "-5 ns..0 ns")],
)
def test_an_empty_window_is_refused(start: float, end: float, said: str) -> None:
    """One with no length, one that is the wrong way round, and those beside the run."""
    with pytest.raises(UsageError) as caught:
        made([(1, 0.0, TOTAL, 0)]).window(start, end)
    assert str(caught.value) == (
        f"a window must lie in the run, which took 100 ns, and not be empty, not {said}; give another one."
    )


def test_a_window_of_a_window_has_nothing_from_outside_of_either() -> None:
    """What was not looked at is unknown, not 0; a window that lies there is refused."""
    cut = made([(1, 0.0, TOTAL, 0)]).window(30.0, 40.0)
    again = cut.window(0.0, 90.0)
    assert again == cut and again.known_ns == (30.0, 40.0)
    assert {(float(c.times_ns[0]), float(c.times_ns[-1])) for c in again.counters} == {(30.0, 40.0)}
    assert cut.window(35.0, 90.0).known_ns == (35.0, 40.0)
    assert made([(1, 0.0, TOTAL, 0)]).window(-1.0, TOTAL).known_ns is None
    for start, end in ((40.0, 50.0), (0.0, 30.0)):
        with pytest.raises(UsageError) as caught:
            cut.window(start, end)
        assert str(caught.value) == (
            "a window must lie in what is known of the run, which is from 30 ns to 40 ns, and not be empty, not "
            f"{start:g} ns..{end:g} ns; give another one."
        )


def test_another_level_is_refused() -> None:
    """The sentence names all there are."""
    with pytest.raises(UsageError) as caught:
        made([(1, 0.0, 1.0, 0)]).level("gate")
    assert str(caught.value) == "level must be one of host, launch, kernel, unit, channel, wire, not 'gate'."


@given(st.integers(0, 2**20), st.integers(0, 2**31))
def test_ops_are_numbered(pe: int, issue: int) -> None:
    """There and back, within what a column holds."""
    assert op_of(np.int64(op_number(pe, issue))) == (pe, issue)  # type: ignore[arg-type]
    assert op_of(-1) is None


def test_timelines_are_compared_by_value() -> None:
    """One time apart, and they differ."""
    spans = [(1, 0.0, 1.0, 0), (2, 1.0, 2.0, 1)]
    assert made(spans, [(0, 1)]) == made(spans, [(0, 1)])
    assert made(spans, [(0, 1)]) != made(spans)
    assert made(spans) != made([*spans[:1], (2, 1.0, 3.0, 1)])
