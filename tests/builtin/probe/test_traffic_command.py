"""What `kernbench probe --traffic` takes as loads and sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.probe.traffic import TrafficSetup, state_of
from kernbench_builtin.probe.traffic_command import default_loads, packet_flits, parse_loads
from kernbench_builtin.probe.traffic_patterns import PATTERNS, make_pattern
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


@pytest.mark.parametrize("name", PATTERNS)
def test_loads_that_nobody_gives_stay_below_the_ceiling(name: str) -> None:
    mesh = make_mesh(5, 5)
    traffic = TrafficSetup(mesh, HOPS, make_pattern(name, mesh))
    loads = default_loads(traffic)
    states = [state_of(load, min(1.0, traffic.ceiling()[0]), 0) for load in loads]
    assert loads == tuple(sorted(loads))
    assert states == ["stable"] * 3 + ["near"] * 3
