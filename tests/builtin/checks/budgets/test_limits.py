"""Limits are given as numbers, quantities and pairs, and say by how much a figure is beyond them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernbench_core as kb
from kernbench_builtin.checks.budgets.limits import (
    Budget,
    budgets_from,
    figures_of_result,
    spreads_of_result,
    unit_of,
)
from kernbench_builtin.compare.formatting import change_text
from kernbench_core.errors import UsageError
from kernbench_core.plugins import Plugins
from kernbench_core.runs.result import RunResult
from kernbench_core.spread import TimeSpread

KNOWN = dict.fromkeys(("time_ns", "hbm_bytes", "hazards", "utilisation.pe_gemm", "busy_ns.pe_gemm"), 1)
BOUNDS = st.one_of(st.none(), st.floats(-10, 10), st.integers(-10, 10))


def one(limit: object, figure: str = "time_ns") -> Budget:
    """Return the budget that a limit gives."""
    (made,) = budgets_from({figure: limit}, KNOWN)
    return made


@pytest.mark.parametrize(
    ("figure", "limit", "said"),
    [
        ("time_ns", 65_000, "at most 65 us"),
        ("time_ns", "65 us", "at most 65 us"),
        ("time_ns", ("60 us", 65_000), "at least 60 us and at most 65 us"),
        ("hbm_bytes", "1 MiB", "at most 1 MiB"),
        ("hbm_bytes", [64, None], "at least 64 B"),
        ("hazards", 0, "at most 0"),
        ("hazards", (2, 2), "exactly 2"),
        ("utilisation.pe_gemm", (0.5, None), "at least 0.5"),
        ("busy_ns.pe_gemm", (None, "1 us"), "at most 1 us"),
    ],
)
def test_what_a_limit_says(figure: str, limit: object, said: str) -> None:
    assert one(limit, figure).said == said


@given(BOUNDS, BOUNDS, st.floats(-10, 10))
def test_a_budget_holds_between_its_bounds(low: float | None, high: float | None, measured: float) -> None:
    """Both ends are within it; what it says of a figure beyond it is by how much."""
    if low is not None and high is not None and low > high:
        low, high = high, low
    budget = Budget("time_ns", low, high)
    inside = max(low if low is not None else -math.inf, min(high if high is not None else math.inf, measured))
    assert (budget.fault(measured) == "") is (inside == measured)
    if inside != measured:
        assert f": {change_text('ns', measured - inside)}" in budget.fault(measured)


#: What is measured, and what is said of it after the name of the figure.
BEYOND = [
    (Budget("time_ns", None, 6_500), 7_135.5, "must be at most 6.5 us, and is 7.136 us: +635.5 ns (+9.78 %)"),
    (Budget("hazards", None, 0), 2, "must be at most 0, and is 2: +2"),
    (Budget("hbm_bytes", 64, 128), 32, "must be at least 64 B and at most 128 B, and is 32 B: -32 B (-50.00 %)"),
    (Budget("intensity", None, 1), None, "must be at most 1, and the run did not measure it"),
    (
        Budget("max_abs_error", None, 1e-3),
        None,
        "must be at most 0.001, and the run did not measure it; verify_data=True does",
    ),
    (Budget("time_ns", None, 6_000), 6_000.25, "must be at most 6 us, and is 6,000.25 ns: +250 ps (+0.0042 %)"),
    (Budget("utilisation.x", 0.5, None), 0.4999, "must be at least 0.5, and is 0.4999: -0.0001 (-0.02 %)"),
]


@pytest.mark.parametrize(("budget", "measured", "said"), BEYOND)
def test_what_is_said_of_a_figure_beyond_it(budget: Budget, measured: float | None, said: str) -> None:
    assert budget.fault(measured) == f"{budget.figure} {said}"


TIME = "the budget of time_ns must be an upper bound, also as '65 us', or a pair of lower and upper bound, not "
SIZE = "the budget of hbm_bytes must be an upper bound, also as '1 MiB', or a pair of lower and upper bound, not "
COUNT = "the budget of hazards must be an upper bound, or a pair of lower and upper bound, not "


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"tiem_ns": 1},
            "a budget must be of a numeric figure of the run, not 'tiem_ns'. Did you mean 'time_ns'?",
        ),
        (
            {"verified": 1},
            "a budget must be of a numeric figure of the run, not 'verified'. Write assert result.verified.",
        ),
        ({}, "a budget must name its figures, as time_ns=65_000 or a mapping, not {}."),
        (65_000, "a budget must name its figures, as time_ns=65_000 or a mapping, not 65000."),
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
def test_what_is_no_budget(given: Any, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        budgets_from(given, KNOWN)
    assert str(caught.value) == sentence


def test_units_are_told_by_names() -> None:
    """Of families, too; a name that only ends in the same letters is a count."""
    assert [unit_of(name) for name in (*KNOWN, "statistics.acme.collisions")] == ["ns", "bytes", "", "", "ns", ""]


def test_figures_are_numbers(result: RunResult) -> None:
    """Or None where the run did not measure them."""
    figures = figures_of_result(result)
    assert figures["time_ns"] == result.total_ns and figures["max_abs_error"] is None
    assert "verified" not in figures and not any(isinstance(each, str | bool) for each in figures.values())


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (104, ""),
        (96, ""),
        (95.5, "time_ns must be at most 95.5 ns, and is 100 ns: +4.5 ns (+4.71 %), beyond the spread of 8 ns"),
        ((105, None), "time_ns must be at least 105 ns, and is 100 ns: -5 ns (-4.76 %), beyond the spread of 8 ns"),
    ],
)
def test_a_shaken_run_is_beyond_a_bound_as_a_whole_or_not_at_all(limit: object, said: str) -> None:
    """The median counts, and not the run itself, which is far off here; the ends of the spread belong to it."""
    assert one(limit).fault(1e6, TimeSpread(100.0, 96.0, 104.0, 8)) == said


def test_spreads_have_the_names_of_the_figures(plugins: Plugins) -> None:
    result = kb.run("vector-add", "tiny", {"n": 64}, data=False, shake=3, plugins=plugins)
    figures, spreads = figures_of_result(result), spreads_of_result(result)
    assert set(spreads) == {"time_ns", *(f"{name}_ns" for name in result.phases)}
    assert all(figures[name] == pytest.approx(each.median_ns, rel=2e-3) for name, each in spreads.items())
