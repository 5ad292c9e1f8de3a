"""Where a mesh saturates: at the ceiling where nothing is held up, below it with credits, as the reference does."""

from __future__ import annotations

import statistics

import pytest

from kernbench_builtin.probe.traffic import TrafficSetup, Window
from kernbench_builtin.probe.traffic_patterns import make_pattern
from kernbench_builtin.probe.traffic_saturation import find_saturation
from kernbench_core.topology.mesh import Mesh
from tests.builtin.probe.credit_rig import CATALOGUE, draw, make_mesh
from tests.builtin.probe.credit_simulator import CreditSimulator, Network


def setup(mesh: Mesh, pattern: str, flits: int = 1, burst: float | None = None) -> TrafficSetup:
    return TrafficSetup(mesh, make_pattern(pattern, mesh), flits, Window(300, 1000, 500), 0, burst)


@pytest.mark.parametrize("pattern", ["transpose", "hotspot"])
def test_without_back_pressure_it_is_the_ceiling(pattern: str) -> None:
    traffic = setup(make_mesh(4, 4, impl="builtin.forwarding", overhead="2 ns"), pattern)
    ceiling = traffic.ceiling()[0]
    found = find_saturation(traffic, CATALOGUE)
    assert 0.9 * ceiling < found.load < ceiling
    assert found.beyond is not None and found.beyond - found.load == pytest.approx(ceiling / 64)


def test_bursts_may_be_all_that_sources_can_do() -> None:
    traffic = setup(make_mesh(2, 2, impl="builtin.forwarding"), "uniform", burst=1.0)
    found = find_saturation(traffic, CATALOGUE)
    assert found.beyond is None
    assert found.load == pytest.approx(0.5 * 63 / 64)


@pytest.mark.parametrize(("pattern", "flits"), [("uniform", 4), pytest.param("hotspot", 1, marks=pytest.mark.slow)])
def test_with_credits_it_is_where_the_reference_saturates(pattern: str, flits: int) -> None:
    """In the reference packets wait no longer late than early somewhat below it, and ever longer beyond."""
    mesh = make_mesh(4, 4, overhead="4 ns", vcs=2, buffer_flits=4)
    found = find_saturation(setup(mesh, pattern, flits), CATALOGUE)
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
    traffic = TrafficSetup(mesh, make_pattern(pattern, mesh), 1, window)
    ceiling = min(1.0, traffic.ceiling()[0])
    for load in (0.97 * ceiling, ceiling, 1.0):
        point = traffic.measure(load, CATALOGUE)
        assert point.accepted <= ceiling
        assert point.accepted <= point.delivered
        assert point.state == "saturated" or load < ceiling


def test_a_network_that_is_held_up_everywhere_accepts_less_than_one_that_is_not() -> None:
    """A hot spot fills the buffers of all that lead to it: with credits its tree holds up the others."""
    accepted = {}
    for impl in ("builtin.forwarding", "builtin.router_vc"):
        mesh = make_mesh(4, 4, impl=impl, overhead="2 ns")
        point = TrafficSetup(mesh, make_pattern("hotspot", mesh), 1, Window(500, 1500, 0)).measure(0.8, CATALOGUE)
        accepted[impl] = point.delivered
    assert accepted["builtin.router_vc"] < 0.7 * accepted["builtin.forwarding"]
