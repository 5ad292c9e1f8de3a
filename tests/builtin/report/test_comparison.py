"""Runs side by side: the same times in one table, and how those of the others differ from the first."""

from __future__ import annotations

import re
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.pages.report import RunPage, render_report
from kernbench_builtin.pages.report.comparison import ComparedTime, compared, difference, moved_from_first
from tests.builtin.report.pages import result, shipped


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


LINKS = {"kind": ["wire"], "gb_per_s": [10.0], "bytes": [64], "deliveries": [1], "waited_ns": [0.0]}


def moved(first: RunPage, *others: RunPage) -> str:
    """Return what a page of runs says of what moved, without its elements."""
    text = render_report([first, *others], shipped())
    parts = re.findall(r'<article class="moved">(.*?)</article>', text, re.DOTALL)
    assert len(parts) == len(others)
    parts += re.findall(r'<section id="compared"(.*?)</section>', text, re.DOTALL)
    order = ("compared", "timeline", "moved", "machine")
    assert [name for name in re.findall(r'<section id="(\w+)"', text) if name in order] == [*order]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", " ".join(parts)))


def test_what_moved_stands_below_the_times() -> None:
    """What was run otherwise, and each sort of things in a table of its own; names are text."""
    first = page("a", links={"name": ["x->y"], "latency_ns": [5.0], "busy_ns": [1.5], **LINKS})
    hostile = {"name": ["x->y"], "latency_ns": [6.0], "busy_ns": [2.5], **LINKS, "kind": ["<i>"]}
    other = page("<b>", links=hostile, params={"n": 8}, hazards=[], total_ns=100.0)
    told = moved(first, other)
    assert "total time 100 ns, the same" in told and "A is a, B is &lt;b&gt;." in told
    assert "parameter n 3 8" in told
    assert "Links: 1 moved what latency busy x → y &lt;i&gt; 5 ns → 6 ns +1 ns (+20.00 %) 1.5 ns → 2.5 ns" in told
    assert "not compared: critical path, places on the critical paths of launches (not known of A and B" in told


def test_each_run_is_compared_with_the_first() -> None:
    """Under its name; the same run moved nothing, and has no table."""
    one, two = page("a"), page("b", total_ns=50.0, phases={"kernel": 50.0})
    told = moved(one, two, page("c"))
    assert "What moved: b Nothing that both runs name is otherwise: " in told
    assert " total time 100 ns → 50 ns, -50 ns (-50.00 %)" in told
    assert " c: the same: 100 ns, and no figure moved" in told


def test_both_critical_paths_have_one_scale() -> None:
    """A bar each, as long as it took; the longest parts first, and all others together."""
    parts = [(f"p{at}", 10.0 * (at == 0) + 1.0) for at in range(12)]
    where = [{"phase": "kernel", "sort": "read", "kind": kind, "ns": ns, "waited_at": None} for kind, ns in parts]
    nothing: dict[str, Any] = {"ledger": [], "queueing": [], "launches": [], "filling": [],
                               "utilisation": {"bin_ns": 1.0, "kinds": []}}  # fmt: skip
    pages = []
    for name, by in (("a", 1.0), ("b", 2.0)):
        explain = {"where": [{**each, "ns": each["ns"] * by} for each in where], **nothing}
        pages.append(page(name, explain=explain, total_ns=22.0 * by, phases={"kernel": 22.0 * by}))
    (found,) = moved_from_first([attrs.evolve(each) for each in pages])
    assert [(part.name, part.before, part.after) for part in found.path] == [
        ("kernel · read · p0", 11.0, 22.0),
        *((f"kernel · read · {kind}", 1.0, 2.0) for kind in ("p1", "p10", "p11", "p2", "p3", "p4")),
        ("5 others", 5.0, 10.0),
    ]
    widths = [sum(float(w) for w in re.findall(r'width="([\d.]+)" height="22"', bar)) for bar in found.bars]
    assert widths == pytest.approx([320.0, 640.0], abs=0.1)
    assert "Critical path of the whole run, before and after" in moved(*pages)


def test_of_many_things_some_are_listed() -> None:
    """With how many are not; of their kind there is one."""
    count = 230
    links = [
        {"name": [f"l{at}" for at in range(count)], "kind": ["wire"] * count, "gb_per_s": [1.0] * count,
         "latency_ns": [1.0] * count, "bytes": [0] * count, "deliveries": [0] * count, "waited_ns": [0.0] * count,
         "busy_ns": [float(at * by) for at in range(count)]}
        for by in (1, 2)
    ]  # fmt: skip
    told = moved(page("a", links=links[0]), page("b", links=links[1]))
    assert "Links: 229 moved" in told and "29 more moved less; kernbench diff --json lists all." in told
    assert told.count(" wire ") == 200 + 1 and "194 more" in told
