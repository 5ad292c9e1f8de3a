"""A window is two times with units, in order."""

from __future__ import annotations

import math

import pytest

from kernbench_builtin.pages.timeline.window import TimeWindow, parse_window
from kernbench_core.errors import UsageError


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("10 us..20 us", TimeWindow(10_000.0, 20_000.0)),
        ("1.5us .. 2e3 ns", TimeWindow(1500.0, 2000.0)),
        ("0 ns..1 ps", TimeWindow(0.0, 0.001)),
        ("..3 ns", TimeWindow(0.0, 3.0)),
        ("3 ns..", TimeWindow(3.0, math.inf)),
    ],
)
def test_windows(text: str, found: TimeWindow) -> None:
    """One of the two may be left out."""
    assert parse_window(text) == found


@pytest.mark.parametrize(
    "text", ["", "..", "1 us", "1..2", "2 us..1 us", "1 us..1 us", "-1 us..1 us", "a..b", "1 B..2 B"]
)
def test_what_is_no_window(text: str) -> None:
    """Numbers without units, times the wrong way round, and nothing at all."""
    with pytest.raises(UsageError) as caught:
        parse_window(text)
    assert str(caught.value) == (
        "window must be two times with their units, the earlier one first, as '10 us..20 us', one of which may be left "
        f"out, not {text!r}."
    )
