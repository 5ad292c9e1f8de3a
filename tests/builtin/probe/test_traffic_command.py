"""What `kernbench probe --traffic` takes as loads and sizes."""

from __future__ import annotations

import re
from functools import cache

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.probe.traffic import LoadPoint, TrafficSetup, Window, state_of
from kernbench_builtin.probe.traffic_command import default_loads, packet_flits, parse_loads
from kernbench_builtin.probe.traffic_patterns import PATTERNS, make_pattern
from kernbench_builtin.probe.traffic_view import Report
from kernbench_core.errors import UsageError
from tests.core.mesh_rig import HOPS, make_mesh


@pytest.mark.parametrize(
    ("text", "loads"),
    [
        ("0.2", (0.2,)),
        ("0.1,0.3, .25", (0.1, 0.3, 0.25)),
        ("0.05:0.2:0.05", (0.05, 0.1, 0.15, 0.2)),
        ("0.1:0.25:0.1", (0.1, 0.2)),
        ("1e-2,0.3:0.3:0.1", (0.01, 0.3)),
    ],
)
def test_loads_are_numbers_and_ranges(text: str, loads: tuple[float, ...]) -> None:
    assert parse_loads(text) == loads


@given(st.integers(1, 40), st.integers(1, 20))
def test_a_range_includes_its_end(first: int, steps: int) -> None:
    last = first + steps
    assert parse_loads(f"{first / 100}:{last / 100}:0.01") == tuple(n / 100 for n in range(first, last + 1))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x", "--load must be numbers or ranges FROM:TO:STEP, such as 0.1,0.2 or 0.05:0.45:0.05, not 'x'."),
        ("", "--load must be numbers or ranges FROM:TO:STEP, such as 0.1,0.2 or 0.05:0.45:0.05, not ''."),
        ("0.1,inf", "--load must be numbers or ranges FROM:TO:STEP, such as 0.1,0.2 or 0.05:0.45:0.05, not '0.1,inf'."),
        ("0.1:0.2", "--load must have ranges FROM:TO:STEP that go up, not '0.1:0.2'."),
        ("0.3:0.2:0.1", "--load must have ranges FROM:TO:STEP that go up, not '0.3:0.2:0.1'."),
        ("0.1:0.2:0", "--load must have ranges FROM:TO:STEP that go up, not '0.1:0.2:0'."),
        ("0", "--load must be above 0 and at most 1 flit per node and cycle, the capacity of a link, not 0."),
        ("-0.1", "--load must be above 0 and at most 1 flit per node and cycle, the capacity of a link, not -0.1."),
        ("0.1,1.5", "--load must be above 0 and at most 1 flit per node and cycle, the capacity of a link, not 1.5."),
        ("0.1:1:0.001", "--load must give at most 200 loads, not 901; take larger steps."),
    ],
)
def test_other_loads_are_refused_in_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_loads(text)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(("text", "flits"), [("4", 4), ("1 flit", 1), ("3flits", 3), ("128 B", 4), ("1 KiB", 32)])
def test_packets_are_flits_or_bytes(text: str, flits: int) -> None:
    assert packet_flits(text, 32) == flits


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("100 B", "--packet must be a multiple of a flit of 32 B, not '100 B'."),
        ("0", "--packet must be a number of flits or a size, such as 4 or '128 B', not '0'."),
        ("2.5", "--packet must be a number of flits or a size, such as 4 or '128 B', not '2.5'."),
        ("-4", "--packet must be a number of flits or a size, such as 4 or '128 B', not '-4'."),
        ("4 GB/s", "--packet must be a number of flits or a size, such as 4 or '128 B', not '4 GB/s'."),
    ],
)
def test_other_packets_are_refused_in_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        packet_flits(text, 32)
    assert str(caught.value) == sentence


@cache
def measured_once() -> tuple[Report, LoadPoint]:
    mesh = make_mesh(2, 2, clock="500 MHz")
    traffic = TrafficSetup(mesh, HOPS, make_pattern("uniform", mesh), 1, Window(0, 20, 50))
    return Report("mesh", "uniform", traffic), traffic.measure(0.1)


def number(text: str) -> float:
    """Read a cell, of which large ones have a letter for their zeros."""
    return float(text.rstrip("kM")) * {"k": 1e3, "M": 1e6}.get(text[-1], 1.0)


LATENCY = st.floats(0, 1e7).map(lambda value: round(value, 3))


@given(st.sampled_from([0.1, 0.0123, 0.00125, 0.3938]), LATENCY, LATENCY, LATENCY, LATENCY, LATENCY, st.floats(0, 130))
def test_columns_of_the_table_stay_apart_and_line_up(
    load: float, mean: float, queued: float, p50: float, p99: float, longest: float, hops: float
) -> None:
    """Whatever the numbers are, each ends below the heading of its column, and is what it says to its last digit."""
    report, measured = measured_once()
    point = evolve(measured, load=load, mean=mean, queued=queued, p50=p50, p99=p99, longest=longest, hops=hops)
    names, row = report.heading()[-1], report.row(point)
    ends = [match.end() for match in re.finditer(r"\S+", names)]
    cells = [(match.group(), match.end()) for match in re.finditer(r"\S+", row)]
    assert [end for _, end in cells[1:]] == ends[1:]
    assert len(row) <= 80
    latencies = [number(text) for text, _ in cells[3:8]]
    for shown, value in zip(latencies, (mean, queued, p50, p99, longest), strict=True):
        assert shown == pytest.approx(value, rel=0.006, abs=0.51)
    assert number(cells[8][0]) == pytest.approx(mean * 2, rel=0.006, abs=0.051)


@pytest.mark.parametrize("name", PATTERNS)
def test_loads_that_nobody_gives_stay_below_the_ceiling(name: str) -> None:
    mesh = make_mesh(5, 5)
    traffic = TrafficSetup(mesh, HOPS, make_pattern(name, mesh))
    loads = default_loads(traffic)
    states = [state_of(load, min(1.0, traffic.ceiling()[0]), 0) for load in loads]
    assert loads == tuple(sorted(loads))
    assert states == ["stable"] * 3 + ["near"] * 3
