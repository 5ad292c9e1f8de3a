"""Fits within limits: against a fine grid of candidates, on models that are known, and rows that cannot tell."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.calibrate.fit import Matrix, fit, terms_of, values_of
from kernbench_builtin.calibrate.least_squares import bounded_least_squares
from kernbench_core.calibration import Unknown
from kernbench_core.errors import UsageError

LATENCY = Unknown("latency", "a", "time", 10.0, 1e4, "", "small ones")
BANDWIDTH = Unknown("bandwidth", "b", "bandwidth", 1.0, 1000.0, "", "large ones", inverse=True)
BOTH = (LATENCY, BANDWIDTH)
SIZES = np.array([64.0 * 4**n for n in range(10)])


def model(latency: float, bandwidth: float) -> Matrix:
    """Return times of a kind that closed forms have the steepness of, but not the level or all of the curve."""
    return 3 * latency + 200 + SIZES * (1 + 8 / 256) / bandwidth + np.sqrt(SIZES)


def slopes(terms: Matrix) -> Matrix:
    """Return what a closed form without overheads says."""
    return np.column_stack([np.full(len(SIZES), 3.0), SIZES])


def fitted(measured: Matrix) -> tuple[list[float], list[str | None]]:
    def simulate(terms: Matrix) -> Matrix:
        return model(*values_of(BOTH, terms))

    found = fit(BOTH, measured, len(SIZES), slopes, simulate)
    assert found.simulated == pytest.approx(model(*(one.value for one in found.values)))
    return [one.value for one in found.values], [one.limit for one in found.values]


@given(st.floats(20, 5000), st.floats(2, 900))
def test_what_a_machine_was_is_found_again(latency: float, bandwidth: float) -> None:
    """From its own times, whose level and slope the closed forms miss."""
    values, limits = fitted(model(latency, bandwidth))
    assert values == [pytest.approx(latency, rel=2e-3), pytest.approx(bandwidth, rel=2e-3)]
    assert limits == [None, None]


@given(st.floats(100, 5000), st.floats(5, 500), st.integers(0, 2**32 - 1))
def test_noise_of_two_per_cent_moves_a_fit_by_few(latency: float, bandwidth: float, seed: int) -> None:
    """Each value within four standard errors as the fit itself states them, or within 6 %."""
    noise = np.random.default_rng(seed).normal(1, 0.02, len(SIZES))
    measured = model(latency, bandwidth) * noise
    found = fit(BOTH, measured, len(SIZES), slopes, lambda terms: model(*values_of(BOTH, terms)))
    for one, true in zip(found.values, (latency, bandwidth), strict=True):
        assert one.error is not None and 0 < one.error < 0.1
        assert one.value == pytest.approx(true, rel=max(0.06, 4 * one.error))


@pytest.mark.parametrize(("latency", "bandwidth", "limits"), [
    (2.0, 100.0, ["low", None]), (50.0, 4000.0, [None, "high"]), (5e4, 100.0, ["high", None]),
    (50.0, 0.5, [None, "low"]),
])  # fmt: skip
def test_a_value_beyond_its_limit_lies_on_it_and_says_so(
    latency: float, bandwidth: float, limits: list[str | None]
) -> None:
    """The other one is still free."""
    values, found = fitted(model(latency, bandwidth))
    assert found == limits
    for unknown, value, limit in zip(BOTH, values, limits, strict=True):
        if limit is not None:
            assert value == pytest.approx(unknown.low if limit == "low" else unknown.high, rel=1e-6)


@given(st.integers(0, 2**32 - 1))
def test_least_squares_within_bounds_beat_every_candidate_of_a_grid(seed: int) -> None:
    """Of a random problem in three unknowns, against 21 values for each between its bounds."""
    rng = np.random.default_rng(seed)
    matrix, right = rng.normal(size=(6, 3)), rng.normal(size=6)
    low = rng.normal(size=3) - 1
    high = low + rng.uniform(0.1, 2, 3)
    x = bounded_least_squares(matrix, right, low, high)
    assert np.all(x >= low) and np.all(x <= high)
    best = float(np.sum((matrix @ x - right) ** 2))
    axes = [np.linspace(a, b, 21) for a, b in zip(low, high, strict=True)]
    grid = np.array(list(itertools.product(*axes)))
    assert best <= np.sum((grid @ matrix.T - right) ** 2, axis=1).min() + 1e-9


def refusal(sizes: list[float], unknowns: tuple[Unknown, ...] = BOTH) -> str:
    measured = np.array([500 + size / 10 for size in sizes])

    def steep(terms: Matrix) -> Matrix:
        return np.column_stack([np.ones(len(sizes)), np.array(sizes), np.ones(len(sizes))])[:, : len(unknowns)]

    with pytest.raises(UsageError) as caught:
        fit(unknowns, measured, len(set(sizes)), steep, lambda terms: pytest.fail("it was simulated"))
    return str(caught.value)


def test_fewer_measurements_than_parameters_are_refused() -> None:
    """Before anything is simulated; two of one size are one."""
    assert refusal([1e6, 1e6]) == (
        "a fit of 2 parameters (latency, bandwidth) must have at least as many different measurements, not 1; measure "
        "for latency also small ones; measure for bandwidth also large ones, or fit fewer with --fit."
    )


def test_rows_that_only_tell_a_sum_are_refused_by_the_names_of_its_parts() -> None:
    """Two parameters that every row has alike."""
    third = Unknown("start", "c", "time", 10.0, 1e4, "", "two kinds")
    assert refusal([64.0, 1e6, 1e7], (*BOTH, third)) == (
        "latency and start are not identified by these rows: values far apart would fit them as well; measure for "
        "latency also small ones; measure for start also two kinds, or leave one of them as the machine has it by "
        "naming the others with --fit."
    )


def test_rows_in_which_a_parameter_hardly_counts_are_refused_by_its_name() -> None:
    """All small: bandwidth is a thousandth of each time."""
    assert refusal([1.0, 2.0, 4.0]).startswith("bandwidth is not identified by these rows: values far apart would")
    assert refusal([1e9, 2e9, 4e9]).startswith("latency is not identified by these rows: values far apart would")


@given(st.floats(0.5, 2000), st.floats(0.5, 2000))
def test_terms_and_values_are_each_others_inverse(latency: float, bandwidth: float) -> None:
    assert values_of(BOTH, terms_of(BOTH, (latency, bandwidth))) == [
        pytest.approx(latency), pytest.approx(bandwidth),
    ]  # fmt: skip
