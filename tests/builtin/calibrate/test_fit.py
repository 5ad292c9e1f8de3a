"""Fits within limits: against a fine grid of candidates, on models that are known, and rows that cannot tell."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_builtin.calibrate.fit import Matrix, fit, glance, terms_of, values_of
from kernbench_builtin.calibrate.least_squares import bounded_least_squares
from kernbench_builtin.calibrate.search import FitSearch
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

    found = fit(BOTH, measured, slopes, simulate)
    assert found.simulated == pytest.approx(model(*(one.value for one in found.values)))
    return [one.value for one in found.values], [one.limit for one in found.values]


@given(st.floats(20, 5000), st.floats(2, 900))
def test_what_a_machine_was_is_found_again(latency: float, bandwidth: float) -> None:
    """From its own times, whose level and slope the closed forms miss."""
    values, limits = fitted(model(latency, bandwidth))
    assert values == [pytest.approx(latency, rel=2e-3), pytest.approx(bandwidth, rel=2e-3)]
    assert limits == [None, None]


@given(st.floats(100, 5000), st.floats(5, 500), st.integers(0, 2**32 - 1))
def test_noisy_times_are_fitted_as_numpy_does_that_knows_the_model(latency: float, bandwidth: float, seed: int) -> None:
    """Which is linear: the values are those of lstsq, and the errors at least those of its covariance, to 95 %."""
    measured = model(latency, bandwidth) * np.random.default_rng(seed).normal(1, 0.02, len(SIZES))
    found = fit(BOTH, measured, slopes, lambda terms: model(*values_of(BOTH, terms)))
    steep = np.column_stack([np.full(len(SIZES), 3.0), SIZES * (1 + 8 / 256)]) / measured[:, None]
    right = (measured - 200 - np.sqrt(SIZES)) / measured
    terms, (squares,), _, _ = np.linalg.lstsq(steep, right, rcond=None)
    errors = np.sqrt(np.diag(np.linalg.inv(steep.T @ steep)) * squares / (len(SIZES) - 2)) / terms
    assert [one.value for one in found.values] == pytest.approx([terms[0], 1 / terms[1]], rel=2e-3)
    for one, least in zip(found.values, 2.306 * errors, strict=True):
        assert one.error is not None and 0.98 * least <= one.error <= 2 * least + 0.015


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
        fit(unknowns, measured, steep, lambda terms: pytest.fail("it was simulated"))
    return str(caught.value)


def test_fewer_measurements_than_parameters_are_refused() -> None:
    """Before anything is simulated."""
    assert refusal([1e6]) == (
        "a fit of 2 parameters (latency, bandwidth) must have at least as many different measurements, not 1; measure "
        "for latency also small ones; measure for bandwidth also large ones, or fit fewer with --fit."
    )


def test_rows_that_only_tell_a_sum_are_refused_by_the_names_of_its_parts() -> None:
    """Two parameters that every row has alike."""
    third = Unknown("start", "c", "time", 10.0, 1e4, "", "two kinds")
    assert refusal([64.0, 1e6, 1e7], (*BOTH, third)) == (
        "latency and start are not determined by these rows: very different values fit equally well; measure for "
        "latency also small ones; measure for start also two kinds, or keep the machine's value of one of them by "
        "naming the others with --fit."
    )


def test_rows_in_which_a_parameter_hardly_counts_are_refused_by_its_name() -> None:
    """All small: bandwidth is a thousandth of each time."""
    assert refusal([1.0, 2.0, 4.0]).startswith("bandwidth is not determined by these rows: very different values ")
    assert refusal([1e9, 2e9, 4e9]).startswith("latency is not determined by these rows: very different values ")


@given(st.floats(0.5, 2000), st.floats(0.5, 2000))
def test_terms_and_values_are_each_others_inverse(latency: float, bandwidth: float) -> None:
    assert values_of(BOTH, terms_of(BOTH, (latency, bandwidth))) == [
        pytest.approx(latency), pytest.approx(bandwidth),
    ]  # fmt: skip


WINDOW = 192 << 10
LIMITS = ((2.0, 1e4), (0.985, 900.0))
LINK = (
    evolve(LATENCY, low=LIMITS[0][0], high=LIMITS[0][1]), evolve(BANDWIDTH, low=LIMITS[1][0], high=LIMITS[1][1]),
)  # fmt: skip


def ring(latency: Matrix | float, bandwidth: Matrix | float, sizes: Matrix) -> Matrix:
    """Return times of a ring with a window: data bind, or from a latency on that of a window's way there and back."""
    return 1700 + 1.4 * latency + sizes * 1.5 * np.maximum(1.05 / bandwidth, (latency + 4096 / bandwidth) / WINDOW)


def ring_form(sizes: Matrix) -> Matrix:
    return np.column_stack([np.full(len(sizes), 6.0), 1.5 * sizes])


def closest(measured: Matrix, sizes: Matrix) -> float:
    """Return the least mean square error of a grid between the limits, of finer and finer steps around its best."""
    best, wide = (np.inf, 1.0, 1.0), 1e5
    for _ in range(4):
        axes = [
            np.clip(middle * np.geomspace(1 / wide, wide, 121), *ends)
            for middle, ends in zip(best[1:], LIMITS, strict=True)
        ]
        latency, bandwidth = (axis.reshape(-1, 1) for axis in np.meshgrid(*axes))
        errors = np.sqrt(np.mean((ring(latency, bandwidth, sizes) / measured - 1) ** 2, axis=1))
        at = int(np.argmin(errors))
        best, wide = (float(errors[at]), float(latency[at, 0]), float(bandwidth[at, 0])), max(wide**0.08, 1.002)
    return best[0]


@given(st.floats(100, 5000), st.floats(5, 300), st.integers(2, 6), st.sampled_from([0, 0.01, 0.05]), st.integers(0, 99))
def test_a_fit_is_as_close_as_the_closest_of_a_fine_grid(
    latency: float, bandwidth: float, count: int, noise: float, seed: int
) -> None:
    """Of times with a kink, from slopes that know of none; with as many rows as unknowns, too."""
    rng = np.random.default_rng(seed)
    sizes = 4096 * 2 ** rng.uniform(0, 12, count)
    measured = ring(latency, bandwidth, sizes) * (1 + rng.normal(0, noise, count))
    search = FitSearch(measured, *link_ends(), np.zeros(2), lambda at: ring(at[0], 1 / at[1], sizes))
    start = bounded_least_squares(ring_form(sizes) / measured[:, None], np.ones(count), *link_ends())
    search.run(start, ring_form(sizes))
    assert search.took == pytest.approx(ring(search.at[0], 1 / search.at[1], sizes))
    assert np.sqrt(search.badness / count) <= 1.1 * closest(measured, sizes) + 0.01


def link_ends() -> tuple[Matrix, Matrix]:
    low, high = (np.array([a, b]) for a, b in zip(*LIMITS, strict=True))
    return np.array([low[0], 1 / high[1]]), np.array([high[0], 1 / low[1]])


def test_two_large_sizes_identify_no_latency() -> None:
    """Closed forms have six of it; simulated, data hide most of them until a window binds."""
    sizes = np.array([4.0, 8.0]) * 2**20
    measured = np.array([180e3, 345e3])
    with pytest.raises(UsageError) as caught:
        fit(LINK, measured, lambda _: ring_form(sizes), lambda at: ring(at[0], 1 / at[1], sizes))
    assert str(caught.value) == (
        "latency is not determined by these rows: very different values fit equally well; measure for latency also "
        "small ones, or keep the machine's value of it by naming the others with --fit."
    )


@pytest.mark.parametrize(("moved", "told"), [
    (1, "latency cannot be fitted on this machine, because another resource limits these rows; make that one faster "
     "(kernbench ccl --wide and kernbench run --explain name it), or fit the other parameters alone with --fit."),
    (0, "latency and bandwidth cannot be fitted on this machine, because another resource limits these rows; make that "
     "one faster (kernbench ccl --wide and kernbench run --explain name it)."),
])  # fmt: skip
def test_what_a_machine_hides_is_told_by_name(moved: int, told: str) -> None:
    """Whatever closed forms say: here of latency, and of both."""
    measured = model(1000, 50)
    with pytest.raises(UsageError) as caught:
        fit(BOTH, measured, slopes, lambda terms: 1200 + SIZES * (terms[1] if moved else 0.05))
    assert str(caught.value) == told


class Counted:
    """A simulation that counts how often it ran; times are `model`'s, a part `off`."""

    def __init__(self, off: float = 0.0) -> None:
        self.rounds, self.off = 0, off

    def __call__(self, terms: Matrix) -> Matrix:
        self.rounds += 1
        return model(*values_of(BOTH, terms)) * (1 + self.off)


@settings(max_examples=10)
@given(st.floats(100, 5000), st.floats(5, 500))
def test_another_way_is_given_up_as_soon_as_it_promises_too_little(latency: float, bandwidth: float) -> None:
    """After one simulation where every other row took half as long again; rows that it explains are stepped to."""
    measured, zigzag = model(latency, bandwidth), np.where(np.arange(len(SIZES)) % 2, 1.0, 1.5)
    given_up, gone_on, explained = Counted(), Counted(), Counted()
    promised = glance(BOTH, measured * zigzag, slopes, given_up, 0.06)
    reached = glance(BOTH, measured * zigzag, slopes, gone_on)
    assert given_up.rounds == 1 < gone_on.rounds
    assert 0.06 < promised <= reached * 1.001
    assert glance(BOTH, measured, slopes, explained, 0.06) < 0.06


@pytest.mark.parametrize("seed", range(4))
def test_dear_steps_are_not_made_within_half_a_standard_error(seed: int) -> None:
    """Near times 2 % off move terms by far less than rows that are 20 % off tell: all rows are simulated once."""
    measured = model(1000, 50) * np.random.default_rng(seed).normal(1, 0.2, len(SIZES))
    dear, alone = Counted(), Counted()
    found = fit(BOTH, measured, slopes, dear, near=Counted(0.02))
    best = fit(BOTH, measured, slopes, alone)
    assert dear.rounds == found.rounds == 1 < alone.rounds
    for one, other in zip(found.values, best.values, strict=True):
        if one.error is not None and other.error is not None:
            assert abs(one.value / other.value - 1) < 0.5 * other.error
