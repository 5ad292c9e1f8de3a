"""Where a mesh saturates: at the ceiling where nothing is held up, below it with credits, as the reference does."""

from __future__ import annotations

import statistics
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.machines.mesh import Mesh
from kernbench_builtin.probe.traffic import Meter, Packet, TrafficSetup, Window
from kernbench_builtin.probe.traffic_patterns import make_pattern
from kernbench_builtin.probe.traffic_saturation import check_window, find_saturation
from kernbench_core.errors import ConfigError, UsageError
from tests.builtin.probe.credit_rig import CATALOGUE, draw, make_mesh
from tests.builtin.probe.credit_simulator import CreditSimulator, Network


def setup(mesh: Mesh, pattern: str, flits: int = 1, burst: float | None = None) -> TrafficSetup:
    return TrafficSetup(mesh, CATALOGUE, make_pattern(pattern, mesh), flits, Window(300, 1000, 500), 0, burst)


@pytest.mark.parametrize("pattern", ["transpose", "hotspot"])
def test_without_back_pressure_it_is_the_ceiling(pattern: str) -> None:
    traffic = setup(make_mesh(4, 4, impl="builtin.forwarding", overhead="2 ns"), pattern)
    ceiling = traffic.ceiling()[0]
    found = find_saturation(traffic)
    assert 0.9 * ceiling < found.load < ceiling
    assert found.beyond is not None and found.beyond - found.load == pytest.approx(ceiling / 64)


def test_bursts_may_be_all_that_sources_can_do() -> None:
    traffic = setup(make_mesh(2, 2, impl="builtin.forwarding"), "uniform", burst=1.0)
    found = find_saturation(traffic)
    assert found.beyond is None
    assert found.load == pytest.approx(0.5 * 63 / 64)


@pytest.mark.parametrize(("pattern", "flits"), [("uniform", 4), ("hotspot", 1)])
def test_with_credits_it_is_where_the_reference_saturates(pattern: str, flits: int) -> None:
    """In the reference packets wait no longer late than early somewhat below it, and ever longer beyond."""
    mesh = make_mesh(4, 4, overhead="4 ns", vcs=2, buffer_flits=4)
    found = find_saturation(setup(mesh, pattern, flits))
    ceiling = setup(mesh, pattern, flits).ceiling()[0]
    assert found.beyond is not None and 0.3 * ceiling < found.load < 0.95 * ceiling
    longer = []
    for load in (0.85 * found.load, 1.12 * found.beyond):
        packets = draw(mesh, pattern, load, flits, 3000, seed=7)
        took = [x for x in CreditSimulator(Network(4, 4, vcs=2, buffer=4)).latencies(packets) if x is not None]
        quarter = len(took) // 4
        longer.append(statistics.mean(took[2 * quarter :]) / statistics.mean(took[:quarter]))
    assert longer[0] < 1.3
    assert longer[1] > 2


@pytest.mark.parametrize("impl", ["builtin.forwarding", "builtin.router_vc"])
@pytest.mark.parametrize("pattern", ["uniform", "hotspot"])
@pytest.mark.parametrize("window", [Window(0, 150, 100), Window(200, 300, 100)])
def test_no_more_is_accepted_than_the_ceiling_whatever_the_window(impl: str, pattern: str, window: Window) -> None:
    mesh = make_mesh(4, 4, impl=impl, overhead="2 ns")
    traffic = TrafficSetup(mesh, CATALOGUE, make_pattern(pattern, mesh), 1, window)
    ceiling = min(1.0, traffic.ceiling()[0])
    for load in (0.97 * ceiling, ceiling, 1.0):
        point = traffic.measure(load)
        assert point.accepted <= ceiling
        assert point.accepted <= point.delivered
        assert point.state == "saturated" or load < ceiling


def test_a_network_that_is_held_up_everywhere_accepts_less_than_one_that_is_not() -> None:
    """A hot spot fills the buffers of all that lead to it: with credits its tree holds up the others."""
    accepted = {}
    for impl in ("builtin.forwarding", "builtin.router_vc"):
        mesh = make_mesh(4, 4, impl=impl, overhead="2 ns")
        point = TrafficSetup(mesh, CATALOGUE, make_pattern("hotspot", mesh), 1, Window(300, 600, 0)).measure(0.8)
        accepted[impl] = point.delivered
    assert accepted["builtin.router_vc"] < 0.7 * accepted["builtin.forwarding"]


def carried(mesh: Mesh, pattern: str, flits: int, size: int) -> float:
    """Return the load that the slowest stage of the most loaded wire carries, from bytes and cycles by hand.

    Each packet of the pattern is cut into pieces of `size` bytes, the last one filled up; a wire of 32 B a cycle takes
    them one after the other, and so does the port behind it, as a router decides on one in the time it takes.
    """
    matrix = make_pattern(pattern, mesh).matrix()
    crossed: dict[tuple[str, str], float] = {}
    for source in range(mesh.places):
        for goal in range(mesh.places):
            for wire in pairwise(mesh.route(source, goal)):
                crossed[wire] = crossed.get(wire, 0.0) + float(matrix[source, goal])
    cycles_of_a_packet = -(-flits * 32 // size) * size / 32
    return flits / (max(crossed.values()) * cycles_of_a_packet)


@pytest.mark.parametrize(
    ("size", "flits"), [(64, 1), (64, 3), (16, 1), (8, 5), (96, 2), (32, 4)]
)
@pytest.mark.parametrize("wrap", [False, True])
def test_the_ceiling_counts_the_flits_that_routers_make_of_packets(size: int, flits: int, wrap: bool) -> None:
    """And sources that never pause get no more through."""
    mesh = make_mesh(2, 4, wrap=wrap, overhead="8 ns", flit=f"{size} B", buffer_flits=64, in_order=False)
    for pattern in ("tornado", "uniform"):
        traffic = TrafficSetup(mesh, CATALOGUE, make_pattern(pattern, mesh), flits, Window(100, 200, 0))
        ceiling = carried(mesh, pattern, flits, size)
        assert traffic.ceiling()[0] == pytest.approx(ceiling, rel=1e-9)
    full = traffic.measure(1.0)
    assert full.delivered <= ceiling * 1.02
    assert full.busiest.utilisation > 0.9


@pytest.mark.parametrize(("size", "flits"), [(64, 1), (64, 3), (16, 1), (96, 2)])
def test_two_routers_that_swap_packets_carry_the_ceiling(size: int, flits: int) -> None:
    """Nothing is in the way but the flits, so what arrives is the ceiling, within a packet in 300 cycles."""
    mesh = make_mesh(1, 2, overhead="8 ns", flit=f"{size} B", vcs=8, buffer_flits=32, in_order=False)
    traffic = TrafficSetup(mesh, CATALOGUE, make_pattern("bitcomp", mesh), flits, Window(100, 300, 0))
    assert traffic.measure(1.0).delivered == pytest.approx(carried(mesh, "bitcomp", flits, size), abs=flits / 300)


@pytest.mark.parametrize("node", ["router", "interface"])
@pytest.mark.parametrize("size", ["7 B", "33 B", "48 B"])
def test_a_flit_that_fits_no_cycle_is_refused(node: str, size: str) -> None:
    named = {"router": {"flit": size}, "interface": {"interface": "builtin.router_vc"}}[node]
    more = f"overrides: [{{match: mesh.r0c0.ni, params: {{flit: {size}}}}}]" if node == "interface" else ""
    mesh = make_mesh(2, 2, more=more, impl="builtin.router_vc" if node == "router" else "builtin.forwarding", **named)
    with pytest.raises(ConfigError) as caught:
        TrafficSetup(mesh, CATALOGUE, make_pattern("uniform", mesh)).ceiling()
    place = "mesh.r0c0" if node == "router" else "mesh.r0c0.ni"
    assert str(caught.value) == (
        f"{place}: flit must be the width of a link, 32 B, a multiple of it or a whole part of it, not {size}; give "
        "both the same."
    )


@pytest.mark.parametrize(
    ("pattern", "load", "flits"),
    [
        ("uniform", 0.9, 1),
        ("bitcomp", 0.9, 3),
        ("hotspot", 0.8, 1),
        ("uniform", 0.2, 2),
    ],
)
def test_what_is_sustained_has_arrived_in_the_window(
    pattern: str, load: float, flits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Count packets whose last byte comes in the window: sources that run full bring nothing through."""
    ends: list[float] = []

    class Noting(Meter):
        def note(self, packet: Packet) -> None:
            ends.append(packet.tail)
            super().note(packet)

    monkeypatch.setattr("kernbench_builtin.probe.traffic.Meter", Noting)
    mesh = make_mesh(3, 4, overhead="4 ns", vcs=2, buffer_flits=4)
    traffic = TrafficSetup(mesh, CATALOGUE, make_pattern(pattern, mesh), flits, Window(200, 300, 0))
    point = traffic.measure(load)
    arrived = sum(200 <= end < 500 for end in ends) * flits / 300 / 12
    assert point.sustained <= arrived * (1 + 1e-9)
    assert point.sustained == pytest.approx(arrived, rel=0.02 if load > 0.5 else 0.08)


class Threshold:
    """Be a mesh that saturates at `load`, far from any noise, below a ceiling of 0.8."""

    burst = None

    def __init__(self, load: float) -> None:
        self.load = load
        self.asked: list[float] = []

    def ceiling(self) -> tuple[float, None]:
        return 0.8, None

    def measure(self, load: float) -> Any:
        self.asked.append(load)
        return SimpleNamespace(load=load, state="saturated" if load > self.load else "near")


@given(
    st.floats(0.01, 0.79),
    st.lists(st.tuples(st.floats(0.01, 1.0), st.sampled_from(["stable", "near", "saturated"])), max_size=5),
)
def test_rows_that_are_saturated_lie_above_it_and_others_below(at: float, rows: list[tuple[float, str]]) -> None:
    """Whatever the windows said, those of the rows that were asked for too; and it is never empty of a result."""
    mesh: Any = Threshold(at)
    known: Any = [SimpleNamespace(load=load, state="saturated" if load >= 0.8 else state) for load, state in rows]
    found = find_saturation(mesh, known)
    assert found.beyond is not None and 0 <= found.load <= found.beyond <= 0.8
    calm = [point.load for point in (*known, *found.tried) if point.state != "saturated"]
    grown = [point.load for point in (*known, *found.tried) if point.state == "saturated"]
    assert all(load <= found.load or found.vague for load in calm)
    assert all(load >= found.beyond or found.vague for load in grown)
    assert all(load > found.load for load in grown) and all(load < found.beyond for load in calm)
    assert found.vague == any(low <= high for low in grown for high in calm)
    assert found.vague or found.beyond - found.load <= 0.8 / 64 + 1e-9


def test_loads_that_rows_tell_of_are_not_simulated_again() -> None:
    mesh: Any = Threshold(0.33)
    known: Any = [SimpleNamespace(load=0.31, state="near"), SimpleNamespace(load=0.39, state="saturated")]
    found = find_saturation(mesh, known)
    assert mesh.asked == [point.load for point in found.tried] == pytest.approx([0.35, 0.325, 0.3375])
    assert (found.load, found.beyond) == pytest.approx((0.325, 0.3375))


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_load_that_halving_meets_again_but_for_rounding_is_not_simulated_again(sign: int) -> None:
    mesh: Any = Threshold(0.33)
    mesh.ceiling = lambda: (0.8 * (1 + sign * 1e-12), None)
    known: Any = [SimpleNamespace(load=0.2, state="near"), SimpleNamespace(load=0.6, state="saturated")]
    find_saturation(mesh, known)
    assert mesh.asked == pytest.approx([0.4, 0.3, 0.35, 0.325, 0.3375])


def test_a_window_of_a_few_bursts_is_refused() -> None:
    """300 cycles of 15 nodes hold 28 bursts: what is made may be a third more or less than the load."""
    mesh = make_mesh(3, 5, overhead="4 ns", vcs=2, buffer_flits=4)
    traffic = TrafficSetup(mesh, CATALOGUE, make_pattern("uniform", mesh), 12, Window(200, 300, 500), 1, 8.0)
    with pytest.raises(UsageError) as caught:
        check_window(traffic)
    assert str(caught.value) == (
        "--measure must be at least 10000 cycles with --saturation, so that the traffic in bursts of 8 comes close to "
        "the load, not 300."
    )
    check_window(TrafficSetup(mesh, CATALOGUE, make_pattern("uniform", mesh), 12, Window(500, 10000, 500), 1, 8.0))
    check_window(TrafficSetup(mesh, CATALOGUE, make_pattern("uniform", mesh), 1, Window(200, 300, 500)))


def test_a_warm_up_in_which_a_mesh_does_not_fill_is_refused() -> None:
    """With none a mesh that was found to saturate at 61 % of its ceiling seemed to at 52 %."""
    mesh = make_mesh(3, 5, overhead="4 ns", vcs=2, buffer_flits=4)
    with pytest.raises(UsageError) as caught:
        check_window(TrafficSetup(mesh, CATALOGUE, make_pattern("uniform", mesh), 12, Window(499, 10000, 500), 1, 8.0))
    assert str(caught.value) == (
        "--warmup must be at least 500 cycles with --saturation, so that a filling mesh does not look like growing "
        "queues, not 499."
    )


@pytest.mark.parametrize("warm_up", [0, 20, 60])
@pytest.mark.parametrize("load", [0.05, 0.2, 0.3])
def test_a_mesh_that_is_not_full_when_the_window_begins_is_not_saturated(load: float, warm_up: int) -> None:
    """Uniform traffic has a ceiling of 4 / k, and a mesh without back-pressure carries all that is below it."""
    mesh = make_mesh(8, 8, impl="builtin.forwarding", overhead="9 ns")
    point = TrafficSetup(mesh, CATALOGUE, make_pattern("uniform", mesh), 1, Window(warm_up, 300, 3000)).measure(load)
    assert point.state == "stable" and point.unfinished == 0
    assert abs(point.growth) < 0.05


def test_queues_that_grow_while_a_mesh_fills_are_told() -> None:
    """With credits the mesh is saturated from 95 % of its ceiling on; there is time to drain all that was measured."""
    mesh = make_mesh(4, 4, overhead="4 ns", vcs=2, buffer_flits=4)
    traffic = TrafficSetup(mesh, CATALOGUE, make_pattern("hotspot", mesh), 1, Window(0, 2000, 50_000))
    point = traffic.measure(0.97 * traffic.ceiling()[0])
    assert point.state == "saturated" and point.growth > 0.01


def test_a_burst_that_ends_behind_the_window_is_no_growth_without_end() -> None:
    """Without back-pressure a mesh carries all that is below its ceiling, here 1."""
    mesh = make_mesh(4, 4, impl="builtin.forwarding", overhead="2 ns")
    traffic = TrafficSetup(mesh, CATALOGUE, make_pattern("uniform", mesh), 1, Window(300, 700, 3000), 1, 64.0)
    point = traffic.measure(0.6)
    assert point.growth > 0.01
    assert point.state == "stable"
