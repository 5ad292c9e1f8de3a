"""Values of counters in traces, whose times are whole ns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.pages.timeline import Counter, at_whole_ns
from tests.builtin.exporters.rounding import near

STEPS = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from([0.0, 3.0, 1.5e9])), min_size=2, unique_by=lambda step: step[0]
)


@given(STEPS)
def test_a_bandwidth_in_whole_ns_sums_to_the_bytes(steps: list[tuple[int, float]]) -> None:
    """At each time, but the last, as many as there were up to half a ns before or after; in the end all of them."""
    times, values = _columns(steps)
    exact = np.append(0.0, np.cumsum(values[:-1] * np.diff(times)))
    shown, rates = np.array(at_whole_ns(Counter("bandwidth", "B/s", 0, times, values))).T
    assert np.all(np.diff(shown) >= 1)
    moved = np.append(0.0, np.cumsum(rates[:-1] * np.diff(shown)))
    assert moved[-1] == pytest.approx(exact[-1]) and rates[-1] == values[-1]
    low, high = (np.interp(shown[:-1] + half, times, exact) for half in (-0.5, 0.5))
    assert np.all(low <= moved[:-1] * (1 + 1e-9) + 1e-9) and np.all(moved[:-1] <= high * (1 + 1e-9) + 1e-9)


@given(STEPS)
def test_other_counters_keep_their_values(steps: list[tuple[int, float]]) -> None:
    """All of them, at the nearest times."""
    times, values = _columns(steps)
    shown = at_whole_ns(Counter("scratchpad", "B", 0, times, values))
    assert shown == [(near(time), value) for time, value in zip(times, values, strict=True)]


def _columns(steps: list[tuple[int, float]]) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], ...]:
    """Return times in ns, eighths of them, and values."""
    return np.array([at / 8 for at, _ in sorted(steps)]), np.array([value for _, value in sorted(steps)])
