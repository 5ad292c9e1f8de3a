"""Objectives as they are written, and the names that they may read."""

from __future__ import annotations

import pytest

from kernbench_builtin.sweeps.objectives.objective import Objective, parse_objective, parse_objectives
from kernbench_core.errors import UsageError


def test_objectives_are_apart_at_their_commas() -> None:
    """Not at those within brackets and quotes; each is read again from its own text."""
    found = parse_objectives(" time , max:gflops,cost = max(area, 2)*1,min: w='a,b' if x == 1 else time_ns,-hbm_bytes")
    assert [(each.name, each.expression.text, each.maximise) for each in found] == [
        ("time", "time", False),
        ("gflops", "gflops", True),
        ("cost", "max(area, 2)*1", False),
        ("w", "'a,b' if x == 1 else time_ns", False),
        ("-hbm_bytes", "-hbm_bytes", False),
    ]
    assert [parse_objective(each.text) for each in found] == list(found)
    assert parse_objective("a == 1").expression.text == "a == 1"


def test_two_of_one_name_are_told() -> None:
    """They would head one column."""
    with pytest.raises(UsageError) as caught:
        parse_objectives("time,max:time")
    assert str(caught.value) == "--objective: two objectives must not both be called 'time'; name one, as NAME=time."


NONE = "must be a figure, a parameter, or a function of --figures FILE.py, and there is none of this name."


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("area", f"'area' {NONE}"),
        ("tim_ns", f"'tim_ns' {NONE} Did you mean 'time_ns'?"),
        ("events", "'events' is a figure and a parameter; write figures.events or params.events."),
        ("mine", "'mine' is a parameter and a function of --figures; write figures.mine or params.mine."),
    ],
)  # fmt: skip
def test_names_that_mean_nothing_or_two_things_are_told(text: str, wanted: str) -> None:
    """Before anything runs."""
    with pytest.raises(UsageError) as caught:
        parse_objective(text).require(["rows", "events", "mine"], ["mine"])
    assert str(caught.value) == f"--objective {text!r}: {wanted}"


@pytest.mark.parametrize(
    "text",
    ["time + rows", "figures.events + params.events", "figures.mine - params.mine", "rows.busbw", "utilisation.pe_gemm",
     "phases.kernel", "cost"],
)  # fmt: skip
def test_names_that_mean_one_thing_pass(text: str) -> None:
    """Figures, families of them, sections, parameters and functions, told apart where they must be."""
    parse_objective(text).require(["rows", "events", "mine"], ["mine", "cost"])


def test_an_objective_is_computed_of_figures_and_parameters() -> None:
    """A quantity of a parameter counts in kernbench's own unit."""

    def value(text: str) -> float:
        found = parse_objective(text)
        assert isinstance(found, Objective)
        return found.of({"link": "0.5 TB/s", "events": 3}, {"time_ns": 2000.0, "events": 10, "area": 7.0, "gone": None})

    assert value("time / 2 + area") == 1007.0
    assert value("link / 1 GB/s") == 500.0
    assert value("link") == 500.0
    assert value("figures.events * 100 + params.events") == 1003.0
    with pytest.raises(UsageError) as caught:
        value("gone * 2")
    assert str(caught.value) == "--objective 'gone * 2', column 1: 'gone' has no value here."
