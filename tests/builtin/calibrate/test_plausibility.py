"""Fits that explain nothing, and the units that would: bounds on either side, and times scaled by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.calibrate.calibration import signed_percent
from kernbench_builtin.calibrate.plausibility import Linear, fitting_factor, refusal_of, require_rising
from kernbench_core.calibration import LogRow
from kernbench_core.errors import UsageError

SIZES = np.array([64.0, 65536.0, 1048576.0])
STEEP = np.column_stack([np.ones(3), SIZES])
LOW, HIGH = np.array([0.0, 1 / 118.2]), np.array([13e3, 1 / 0.25])


@pytest.mark.parametrize(("error", "limits", "refused"), [
    (0.50, [None, "low"], False), (0.51, [None, "low"], True), (0.51, [None, None], True),
    (0.05, ["high", "low"], False), (0.051, ["high", "low"], True), (0.051, ["high", None], False),
])  # fmt: skip
def test_bounds_are_tighter_where_rows_chose_no_value(error: float, limits: list[str | None], refused: bool) -> None:
    told = refusal_of(error, list(zip("ab", limits, strict=True)), None)
    assert (told is not None) == refused


def test_a_refusal_names_the_limits_and_says_what_to_do() -> None:
    assert refusal_of(12.5, [("a", None), ("b", "low")], 1e-3) == (
        "a fit must be within 50% of its rows on average, not 1,250% off (b on its low limit); times 1,000 times as "
        "short would fit: check their unit."
    )
    assert refusal_of(0.6, [("a", None)], None) == (
        "a fit must be within 50% of its rows on average, not 60% off; mend the log, or begin with a machine that is "
        "closer (--topology, --set)."
    )


@given(st.floats(1000, 5000), st.floats(5, 80), st.sampled_from([1e3, 1e-3, 1e6, 1e-6]))
def test_the_factor_is_the_one_that_times_were_scaled_by(start: float, bandwidth: float, factor: float) -> None:
    """Times of a known machine, in another unit; in their own there is none."""
    times = start + SIZES / bandwidth
    assert fitting_factor(Linear(STEEP, times, LOW, HIGH)) is None
    assert fitting_factor(Linear(STEEP, times / factor, LOW, HIGH)) == factor


def test_times_that_fit_in_no_unit_have_no_factor() -> None:
    assert fitting_factor(Linear(STEEP, np.array([31500.0, 4100.0, 2400.0]), LOW, HIGH)) is None


@given(st.permutations([10.0, 20.0, 30.0, 40.0]))
def test_times_are_refused_where_more_of_their_pairs_fall_than_rise(times: list[float]) -> None:
    """Of rows each larger than the one before; those as large say nothing, nor do others that depend on other terms."""
    steep = np.array([[1.0, 64.0], [1.0, 128.0], [1.0, 512.0], [1.0, 4096.0]])
    falls = sum(a > b for at, a in enumerate(times) for b in times[at + 1 :])
    rows = [LogRow(f"a:{at}", str(at), ns, at) for at, ns in enumerate(times)]
    if falls > 3:
        with pytest.raises(UsageError, match=r"^times must rise with size, "):
            require_rising(rows, steep)
    else:
        require_rising(rows, steep)
    require_rising(rows, np.ones((4, 2)))
    require_rising(rows, np.eye(4))


@pytest.mark.parametrize(("part", "text"), [
    (-4e-4, "0.0%"), (4e-4, "0.0%"), (0.0, "0.0%"), (-6e-4, "-0.1%"), (0.0123, "+1.2%"),
])  # fmt: skip
def test_no_error_has_no_sign(part: float, text: str) -> None:
    assert signed_percent(part) == text
