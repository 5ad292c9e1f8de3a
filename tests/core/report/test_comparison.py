"""Runs side by side: the same times in one table, and how those of the others differ from the first."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.report import RunPage, render_report
from kernbench_core.report.comparison import ComparedTime, compared, difference
from tests.core.report.test_page import result, shipped


def page(name: str, *launches: tuple[str, float, float], **more: Any) -> RunPage:
    """Return the page of a run with launches: kernel, begin and end."""
    told = [{"kernel": kernel, "started_ns": begin, "ended_ns": end, "busiest": [], "roofline": None}
            for kernel, begin, end in launches]  # fmt: skip
    return RunPage(name, result(launches=told, **more))


def test_rows_are_the_total_phases_and_kernels() -> None:
    """What a run has not stays open; launches of one kernel are one row, the longest kernel first."""
    first = page("a", ("add", 0.0, 10.0), ("mul", 10.0, 40.0), ("add", 40.0, 45.0))
    other = page("b", ("norm", 5.0, 25.0), total_ns=50.0, phases={"kernel": 20.0, "host_to_device": 30.0})
    assert compared([first, other]) == [
        ComparedTime("total", "total", (100.0, 50.0)),
        ComparedTime("phase", "kernel", (60.0, 20.0)),
        ComparedTime("phase", "launch", (40.0, None)),
        ComparedTime("phase", "host to device", (None, 30.0)),
        ComparedTime("kernel", "mul", (30.0, None)),
        ComparedTime("kernel", "norm", (None, 20.0)),
        ComparedTime("kernel", "add", (15.0, None)),
    ]
    assert compared([first, other])[0].differences == ["the same", "0.50 ×, 50 ns less"]


def test_of_many_kernels_the_others_are_one_row() -> None:
    """Nothing of the time of kernels is left out."""
    launches = [(f"k{at}", 0.0, float(at)) for at in range(1, 31)]
    rows = [row for row in compared([page("a", *launches), page("b")]) if row.sort == "kernel"]
    assert [row.name for row in rows] == [*(f"k{at}" for at in range(30, 18, -1)), "18 other kernels"]
    assert sum(row.ns[0] or 0.0 for row in rows) == sum(range(31))
    assert rows[-1].ns == (sum(range(19)), 0)


@pytest.mark.parametrize(("ns", "first", "told"), [
    (5.0, 5.0, "the same"), (0.0, 0.0, "the same"), (None, 5.0, ""), (5.0, None, ""), (3.0, 0.0, "3 ns more"),
    (0.0, 4.0, "0 ×, 4 ns less"), (1500.0, 1000.0, "1.50 ×, 500 ns more"), (1000.25, 1000.0, "1.00 ×, 250 ps more"),
    (2.0, 1000.0, "0.002 ×, 998 ns less"), (123456.0, 1.0, "1.23e+05 ×, 123.5 us more"),
])  # fmt: skip
def test_a_difference_is_a_ratio_and_a_time(ns: float | None, first: float | None, told: str) -> None:
    assert difference(ns, first) == told


@given(st.floats(1e-3, 1e9), st.floats(1e-3, 1e9))
def test_a_ratio_is_true(ns: float, first: float) -> None:
    """To two digits, whatever the times are."""
    told = difference(ns, first)
    if ns != first:
        assert float(told.split(" ")[0]) == pytest.approx(ns / first, rel=0.06)
        assert told.endswith("more" if ns > first else "less")


def test_it_stands_on_pages_of_several_runs_only() -> None:
    """With what differs beside each run but the first, and names as text."""
    hostile = "<b>"
    both = render_report([page("a", ("add", 0.0, 10.0)), page(hostile, ("add", 0.0, 20.0))], shipped())
    row = next(row for row in re.findall(r"<tr class=.kernel.>(.*?)</tr>", both) if "<code>add</code>" in row)
    cells = [re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<td.*?>(.*?)</td>", row)]
    assert cells == ["kernel add", "10 ns", "20 ns", "2.00 ×, 10 ns more"]
    assert ">&lt;b&gt;</th>" in both and 'href="#compared"' in both
    assert "compared-title" not in render_report([page("a", ("add", 0.0, 10.0))], shipped())
