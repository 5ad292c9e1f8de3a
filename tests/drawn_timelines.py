"""Random timelines, with some of everything, for whoever writes or reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from kernbench_builtin.pages.timeline.levels import LEVELS, PLACE
from kernbench_builtin.pages.timeline.span_rows import SpanRows
from kernbench_builtin.pages.timeline.timeline import FLOWS, Counter, Flows, Timeline, Track, op_number

GRID_NS = 2.0**-16
NAMES = ("copy to device", 'say "µ"', "x = tl.load(p)", "back\\slash")
LINES = ("/kernels/a b.py:3", "/kernels/c:d.py:17")
TIMES = st.one_of(st.integers(0, 40).map(float), st.integers(0, 40 << 16).map(lambda ticks: ticks * GRID_NS))


@st.composite
def timelines(draw: Any) -> Timeline:
    """Draw a tree of tracks, spans that overlap or are parts of others, arrows between any two, and counters."""
    parents = [draw(st.integers(-1, number - 1)) for number in range(draw(st.integers(1, 6)))]
    kinds = st.sampled_from((PLACE, *LEVELS))
    tracks = tuple(Track(at, up, f"track {at % 4}", draw(kinds), f"n{at}") for at, up in enumerate(parents))
    rows = SpanRows()
    times: list[tuple[int, float, float]] = []
    for _ in range(draw(st.integers(0, 14))):
        whole = draw(st.none() | st.integers(0, len(times) - 1)) if times else None
        bounds = (0.0, 50.0) if whole is None else times[whole][1:]
        start, end = sorted(min(max(draw(TIMES), bounds[0]), bounds[1]) for _ in range(2))
        track = draw(st.integers(0, len(tracks) - 1)) if whole is None else times[whole][0]
        rows.add(
            track, draw(st.integers(0, len(NAMES) - 1)), start, end, line=draw(st.integers(-1, 1)),
            op=draw(st.sampled_from([-1, op_number(3, 7), op_number(400, 90_000)])),
            nbytes=draw(st.sampled_from([0, 64, 2**40])), parent=-1 if whole is None else whole,
            message=draw(st.sampled_from([-1, 0, 5_000_000])),
        )  # fmt: skip
        times.append((track, start, end))
    spans, _ = rows.finish(np.arange(len(tracks)))
    ends = st.integers(0, max(0, len(times) - 1))
    arrows = [(draw(ends), draw(ends)) for _ in range(draw(st.integers(0, 4)) if times else 0)]
    begin, end = (np.array([arrow[at] for arrow in arrows], np.int64) for at in (0, 1))
    kind = np.array([draw(st.integers(0, len(FLOWS) - 1)) for _ in arrows], np.int64)
    flows = Flows(kind, begin, spans.start_ns[begin], end, spans.end_ns[end])
    counters = tuple(
        Counter(name, unit, draw(st.integers(0, len(tracks) - 1)), np.array([0.0, 1.5, 9.0]),
                np.array([draw(st.sampled_from([0.0, 3.0, 1.5e9, 0.25])) for _ in range(2)] + [0.0]))
        for name, unit in draw(st.lists(st.sampled_from([("bandwidth", "B/s"), ("scratchpad", "B")]), max_size=2))
    )  # fmt: skip
    return Timeline(50.0, tracks, NAMES, LINES, ("", ""), spans, counters, flows)
