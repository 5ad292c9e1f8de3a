"""Limits are given as numbers, quantities and pairs, and say by how much a figure is beyond them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.errors import UsageError
from kernbench_core.testing.budgets.limits import Budget, budgets_from, change, exact, unit_of

MANY = tuple(f"figure_{at}" for at in range(30))
KNOWN = ("time_ns", "hbm_bytes", "hazards", "utilisation.pe_gemm", "busy_ns.pe_gemm")
BOUNDS = st.one_of(st.none(), st.floats(-10, 10), st.integers(-10, 10))


def one(limit: object, figure: str = "time_ns") -> Budget:
    """Return the budget that a limit gives."""
    (made,) = budgets_from([(figure, limit)], KNOWN)
    return made


@pytest.mark.parametrize(
    ("figure", "limit", "said"),
    [
        ("time_ns", 65_000, "at most 65,000 ns"),
        ("time_ns", "65 us", "at most 65,000 ns"),
        ("time_ns", ("60 us", 65_000.5), "from 60,000 to 65,000.5 ns"),
        ("hbm_bytes", "1 MiB", "at most 1,048,576 B"),
        ("hbm_bytes", [64, None], "at least 64 B"),
        ("hazards", 0, "at most 0"),
        ("hazards", (2, 2), "2"),
        ("utilisation.pe_gemm", (0.5, None), "at least 0.5"),
        ("busy_ns.pe_gemm", (None, "1 us"), "at most 1,000 ns"),
    ],
)
def test_what_a_limit_says(figure: str, limit: object, said: str) -> None:
    assert one(limit, figure).said == said


@given(BOUNDS, BOUNDS, st.floats(-10, 10))
def test_a_budget_holds_between_its_bounds(low: float | None, high: float | None, measured: float) -> None:
    """Both ends are within it; what it says of a figure beyond it is by how much, to the last digit that is shown."""
    if low is not None and high is not None and low > high:
        low, high = high, low
    budget = Budget("time_ns", low, high)
    inside = max(low if low is not None else -math.inf, min(high if high is not None else math.inf, measured))
    assert budget.holds(measured) is (inside == measured)
    assert not budget.holds(None)
    if inside != measured:
        assert f": {exact(abs(measured - inside))} ns too {'little' if measured < inside else 'much'}" in budget.fault(
            measured
        )


#: What is measured, and what is said of it after the name of the figure.
BEYOND = [
    (Budget("time_ns", None, 6_500), 7_135.5, "is 7,135.5 ns, must be at most 6,500 ns: 635.5 ns too much (9.78 %)"),
    (Budget("hazards", None, 0), 2, "is 2, must be at most 0: 2 too much"),
    (Budget("hbm_bytes", 64, 128), 32, "is 32 B, must be from 64 to 128 B: 32 B too little (50.00 %)"),
    (Budget("time_ns", None, 1), 50, "is 50 ns, must be at most 1 ns: 49 ns too much (4,900 %)"),
    (Budget("intensity", None, 1), None, "must be at most 1, and the run did not measure it"),
    (
        Budget("max_abs_error", None, 1e-3),
        None,
        "must be at most 0.001, and the run did not measure it; verify_data=True does",
    ),
    (Budget("time_ns", None, 6), 6 + 2**-16, "is 6.0000153 ns, must be at most 6 ns: 0.0000153 ns too much (0.00 %)"),
    (Budget("utilisation.x", 0.5, None), 0.4999, "is 0.4999, must be at least 0.5: 0.0001 too little (0.02 %)"),
    (Budget("intensity", None, 1), math.inf, "is inf, must be at most 1: inf too much (inf %)"),
]


@pytest.mark.parametrize(("budget", "measured", "said"), BEYOND)
def test_what_is_said_of_a_figure_beyond_it(budget: Budget, measured: float | None, said: str) -> None:
    assert budget.fault(measured) == f"{budget.figure} {said}"


TIME = "the budget of time_ns must be the most that it may be, also as '65 us', or a pair of least and most, not "
SIZE = "the budget of hbm_bytes must be the most that it may be, also as '1 MiB', or a pair of least and most, not "
COUNT = "the budget of hazards must be the most that it may be, or a pair of least and most, not "


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"tiem_ns": 1}, "a budget must be of a figure of the run, not 'tiem_ns'. Did you mean 'time_ns'?"),
        ({}, "a budget must name a figure, as time_ns=65_000."),
        ({"time_ns": (None, None)}, f"{TIME}(None, None)."),
        ({"time_ns": True}, f"{TIME}True."),
        ({"hbm_bytes": math.nan}, f"{SIZE}nan."),
        ({"hazards": (1, 2, 3)}, f"{COUNT}(1, 2, 3)."),
        ({"hazards": "none"}, f"{COUNT}'none'."),
        ({"hazards": None}, f"{COUNT}None."),
        ({"time_ns": "65 GB"}, "the budget of time_ns must be a time, not '65 GB'. Did you mean '65 ns'?"),
        ({"time_ns": (2, 1)}, "the budget of time_ns must have its lower bound first, not (2, 1)."),
    ],
)
def test_what_is_no_budget(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        budgets_from(given.items(), KNOWN)
    assert str(caught.value) == sentence


def test_a_name_that_is_like_no_figure_is_told_some() -> None:
    with pytest.raises(UsageError) as caught:
        budgets_from([("rows.x", 1)], MANY)
    some = ", ".join(MANY[:10])
    assert str(caught.value) == f"a budget must be of a figure of the run, not 'rows.x'. It has {some}, and 20 more."


def test_numbers_in_words() -> None:
    assert (exact(4067.9358978271484, 4.5e-13), exact(4.5e-13)) == ("4,067.9358978271484", "4.5e-13")
    assert [exact(value) for value in (0, 7.0, 1234567, 1234.5678, 0.00012345, -2.5)] == [
        "0", "7", "1,234,567", "1,234.568", "0.000123", "-2.5",
    ]  # fmt: skip
    assert [change(4, 5, " ns"), change(4, 3, ""), change(0, 3, " B"), change(1, 1, "")] == [
        "1 ns more (+25.00 %)", "1 less (-25.00 %)", "3 B more", "same",
    ]  # fmt: skip
    assert [unit_of(name) for name in KNOWN] == [" ns", " B", "", "", " ns"]
