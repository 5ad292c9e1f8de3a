"""Arrows of round trips: from who asked to the channel and back, and what stands for either where it is not seen."""

from __future__ import annotations

import numpy as np
import pytest

from kernbench_builtin.pages.timeline.arrows import Found, Passed, SpanEnds, round_trips
from kernbench_builtin.pages.timeline.timeline import FLOWS

#: Of three round trips, of messages 0 to 2: name, message, whether its reply, whether over a channel, begin and end.
PASSAGES = [
    ("out a", 0, 0, False, 1.0, 2.0), ("in a", 0, 0, False, 2.0, 3.0), ("channel a", 0, 0, True, 3.0, 4.0),
    ("back a", 0, 1, False, 4.0, 5.0), ("home a", 0, 1, False, 5.0, 6.0),
    ("out b", 1, 0, False, 11.0, 12.0), ("in b", 1, 0, False, 12.0, 13.0),
    ("back b", 1, 1, False, 14.0, 15.0), ("home b", 1, 1, False, 15.0, 16.0),
    ("out c", 2, 0, False, 21.0, 22.0), ("in c", 2, 0, False, 22.0, 23.0), ("channel c", 2, 0, True, 23.0, 24.0),
    ("back c", 2, 1, False, 24.0, 25.0), ("home c", 2, 1, False, 25.0, 26.0),
]  # fmt: skip
#: Who asked: an op for the first two, nobody known for the third.
OPS = {"load a": (7, 0.5, 6.5), "load b": (8, 10.5, 16.5)}
TRIPS = {
    "message": np.array([0.0, 1.0, 2.0]), "op": np.array([7.0, 8.0, -1.0]),
    "born_ns": np.array([0.75, 10.75, 20.75]), "answered_ns": np.array([6.25, 16.25, 26.25]),
}  # fmt: skip
SPANS = [*(name for name, *_ in PASSAGES), *OPS]


@pytest.mark.parametrize("first", SPANS)
def test_arrows_reach_the_channel_or_the_wire_next_to_it(first: str) -> None:
    """Whatever the number of a span is, 0 as well as the last; an arrow leaves and arrives within its spans."""
    turned = SPANS.index(first)
    names = SPANS[turned:] + SPANS[:turned]
    times = {name: (start, end) for name, *_, start, end in PASSAGES} | {name: each[1:] for name, each in OPS.items()}
    ends = SpanEnds(*np.array([times[name] for name in names]).T)
    passed = Passed(
        np.array([names.index(name) for name, *_ in PASSAGES]),
        np.array([2 * message + reply for _, message, reply, *_ in PASSAGES]),
        np.array([inner for *_, inner, _, _ in PASSAGES]),
    )
    ops = Found(np.array([op for op, *_ in OPS.values()]), np.array([names.index(name) for name in OPS]))
    found = {
        (FLOWS[kind], names[begin], leaves, names[end], comes)
        for flows in round_trips(ends, TRIPS, passed, ops)
        for kind, begin, leaves, end, comes in zip(
            *(getattr(flows, name).tolist() for name in ("kind", "from_span", "from_ns", "to_span", "to_ns")),
            strict=True,
        )
    }
    assert found == {
        ("request", "load a", 0.75, "channel a", 3.0), ("answer", "channel a", 4.0, "load a", 6.25),
        ("request", "load b", 10.75, "in b", 12.0), ("answer", "back b", 15.0, "load b", 16.25),
        ("request", "out c", 21.0, "channel c", 23.0), ("answer", "channel c", 24.0, "home c", 26.0),
    }  # fmt: skip
