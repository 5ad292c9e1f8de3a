"""The points as columns: each text and number comes to the page as it was, whatever it is."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.pages.report import SweptObjective
from kernbench_builtin.pages.report.sweep.columns import columns, texts
from tests.builtin.report.sweep.made_sweep import point, sweep_page
from tests.builtin.report.sweep.packed_columns import read, unpacked


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8), max_size=50))
def test_texts_come_back(values: list[str]) -> None:
    """Each of them, in order; equal ones are there once."""
    assert read(texts(values)) == values
    assert len(set(unpacked(texts(values)["codes"]))) == len(set(values))


def column(values: list[Any], name: str = "x") -> dict[str, Any]:
    """Return the column of a parameter that has these values."""
    page = sweep_page([point(i, {name: value}, {"time_ns": 1.0, "area": 1.0}) for i, value in enumerate(values)])
    return columns(page)["columns"][0]


@pytest.mark.parametrize(
    ("values", "form", "numbers"),
    [
        ([16, 32, 64], "number", [16.0, 32.0, 64.0]),
        (["100 GB/s", "0.2 TB/s"], "bandwidth", [100.0, 200.0]),
        (["64 KiB", "1 MiB"], "bytes", [65536.0, 1048576.0]),
        (["8 ns", "1.5 us"], "time", [8.0, 1500.0]),
        (["1.2 GHz", "800 MHz"], "number", [1.2, 0.8]),
        (["ring", "mesh"], "text", None),
        ([True, False], "text", None),
        (["64 KiB", "8 ns"], "text", None),
        ([1, "auto"], "text", None),
    ],
)
def test_a_parameter_is_numbers_where_all_of_it_is_of_one_kind(
    values: list[Any], form: str, numbers: list[float] | None
) -> None:
    """In kernbench's own unit; its texts stay as they were given, truth values as YAML has them."""
    found = column(values)
    given = [str(value).lower() if isinstance(value, bool) else str(value) for value in values]
    assert (found["form"], read(found["texts"])) == (form, given)
    assert ("numbers" in found) == (numbers is not None)
    if numbers is not None:
        assert unpacked(found["numbers"]).tolist() == pytest.approx(numbers, rel=1e-15)


def test_a_parameter_that_some_points_have_not_keeps_the_others_in_place() -> None:
    """What is not there is NaN, and no text."""
    found = column([16, None, 64])
    assert read(found["texts"]) == ["16", "", "64"]
    assert [None if math.isnan(each) else each for each in unpacked(found["numbers"])] == [16.0, None, 64.0]


def test_figures_may_be_of_any_kind() -> None:
    """What is not finite has a name in records; texts stay texts, and what a point has not is NaN."""
    figures = [{"a": 1, "b": "inf", "c": "ring", "d": True}, {"a": "nan", "b": 2.0, "c": "mesh"}, {}]
    points = [point(i, {"x": i}, {"time_ns": 1.0, "area": 1.0}, figures=each) for i, each in enumerate(figures)]
    found = {each["name"]: each for each in columns(sweep_page(points))["columns"] if each["role"] == "figure"}
    assert list(found) == ["a", "b", "c", "d"]
    assert [str(each) for each in unpacked(found["a"]["numbers"])] == ["1.0", "nan", "nan"]
    assert [str(each) for each in unpacked(found["b"]["numbers"])] == ["inf", "2.0", "nan"]
    assert read(found["c"]["texts"]) == ["ring", "mesh", ""] and "numbers" not in found["c"]
    assert [str(each) for each in unpacked(found["d"]["numbers"])] == ["1.0", "nan", "nan"]


@pytest.mark.parametrize(("values", "log"), [((1.0, 99.0), False), ((1.0, 100.0), True), ((0.0, 1e6), False)])
def test_figures_that_are_far_apart_stand_on_a_logarithmic_axis(values: tuple[float, float], log: bool) -> None:
    """From a factor of 100 on; what is not positive has no logarithm."""
    points = [point(i, {"x": i}, {"time_ns": value}) for i, value in enumerate(values)]
    assert columns(sweep_page(points, [SweptObjective("time_ns")]))["columns"][1]["log"] is log


def test_no_point_is_no_row() -> None:
    """The columns of the objectives are there, empty."""
    found = columns(sweep_page([]))
    assert found["count"] == 0 and [each["name"] for each in found["columns"]] == ["time_ns", "area"]
    assert unpacked(found["columns"][0]["numbers"]).size == 0
