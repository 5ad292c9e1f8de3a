"""Meshes and tori of routers with credits: every packet as in a simulator of another make, and none waits for ever."""

from __future__ import annotations

import statistics
from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_builtin.components.flits.subpaths import Subpaths
from kernbench_builtin.machines.mesh import Mesh
from kernbench_core.engine.hardware import Hardware
from kernbench_core.environment import Environment
from kernbench_core.errors import ConfigError
from tests.builtin.probe.credit_rig import CATALOGUE, draw, latencies, make_mesh
from tests.builtin.probe.credit_simulator import CreditSimulator, Network

pytestmark = pytest.mark.filterwarnings("ignore:.*raise buffer_flits to")  # small buffers are what is tested

PATTERNS = ("uniform", "transpose", "bitcomp", "hotspot", "tornado")


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("flits", [1, 4])
def test_a_lone_packet_takes_what_it_takes_over_forwarding_routers(wrap: bool, flits: int) -> None:
    ours = make_mesh(3, 4, wrap=wrap, overhead="5 ns")
    cheap = make_mesh(3, 4, wrap=wrap, impl="builtin.forwarding", overhead="5 ns")
    apart = [(1000 * number, *divmod(number, 12), flits) for number in range(144)]
    assert latencies(ours, apart) == latencies(cheap, apart)


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("load", "flits"), [(0.2, 1), (0.5, 4), (0.9, 1), (0.9, 3)])
def test_each_packet_is_as_late_as_in_a_simulator_of_another_make(
    wrap: bool, pattern: str, load: float, flits: int
) -> None:
    """Up to far beyond saturation: loads are in flits per node and cycle."""
    packets = draw(make_mesh(4, 4), pattern, load, flits, 250)
    ours = latencies(make_mesh(4, 4, wrap=wrap, overhead="4 ns", in_order=False), packets)
    assert ours == CreditSimulator(Network(4, 4, wrap)).latencies(packets)


@given(
    st.integers(2, 5), st.integers(2, 5), st.booleans(), st.integers(2, 5), st.integers(1, 6), st.integers(0, 3),
    st.integers(1, 4), st.integers(1, 5), st.integers(0, 9),
)  # fmt: skip
@settings(max_examples=60)
def test_any_network_with_any_packets_is_as_late_and_drains(
    rows: int, columns: int, wrap: bool, vcs: int, buffer: int, routing: int, credit: int, longest: int, seed: int
) -> None:
    overhead = routing + 1 + seed % 3
    mesh = make_mesh(
        rows, columns, wrap=wrap, overhead=f"{overhead} ns", routing_delay=f"{routing} ns", vcs=vcs,
        buffer_flits=buffer, credit_delay=f"{credit} ns", in_order=False,
    )  # fmt: skip
    packets = [(t, s, g, 1 + (t + s) % longest) for t, s, g, _ in draw(mesh, "uniform", 0.5, 1, 40, seed)]
    network = Network(rows, columns, wrap, vcs=vcs, buffer=buffer, overhead=overhead, routing=routing, credit=credit)
    reference = CreditSimulator(network)
    ours = latencies(mesh, packets)
    assert ours == reference.latencies(packets)
    assert None not in ours
    assert reference.fullest <= buffer


@pytest.mark.parametrize("wrap", [False, True])
def test_how_ties_are_broken_matters_little_until_the_network_is_full(wrap: bool) -> None:
    """The reference with arbiters that draw lots: means differ by 2 % at half of the load, where queues are short."""
    mesh = make_mesh(4, 4, wrap=wrap, overhead="4 ns", in_order=False)
    packets = draw(mesh, "uniform", 0.5, 1, 800)
    drawn = CreditSimulator(Network(4, 4, wrap, lottery=True)).latencies(packets)
    fair = [each for each in latencies(mesh, packets) if each is not None]
    assert statistics.mean(fair) == pytest.approx(statistics.mean(x for x in drawn if x is not None), rel=0.02)


@given(st.sets(st.sampled_from([f"mesh.r{row}c{column}" for row in range(4) for column in range(4)]), max_size=8))
@settings(max_examples=30)
def test_networks_of_both_models_drain_and_interfaces_may_have_channels(cheap: set[str]) -> None:
    """Wherever a router without buffers stands between: each lone packet takes the closed form but for its flits."""
    overrides = "".join(
        f"  - {{match: {name}, impl: builtin.forwarding, params: {{overhead: 4 ns}}}}\n" for name in sorted(cheap)
    )
    mesh = make_mesh(4, 4, wrap=True, more=f"overrides:\n{overrides}" if cheap else "", overhead="4 ns")
    packets = draw(mesh, "uniform", 0.8, 3, 60)
    assert None not in latencies(mesh, packets)
    plain = make_mesh(4, 4, wrap=True, impl="builtin.forwarding", overhead="4 ns")
    apart = [(1000 * number, *divmod(number * 7, 16), 1) for number in range(36)]
    assert latencies(mesh, apart) == latencies(plain, apart)


def test_an_interface_with_channels_is_one_more_router() -> None:
    """It is blocked like one, too: at any load what waits, waits at its source."""
    mesh = make_mesh(4, 4, interface="builtin.router_vc", overhead="4 ns")
    cheap = make_mesh(4, 4, impl="builtin.forwarding", overhead="4 ns")
    apart = [(1000 * number, *divmod(number * 7, 16), 5) for number in range(36)]
    assert latencies(mesh, apart) == latencies(cheap, apart)
    assert None not in latencies(mesh, draw(mesh, "hotspot", 0.9, 4, 200))


def waits(mesh: Mesh) -> nx.DiGraph:
    """Return who may wait for whom: a packet that holds a channel behind one link, for one behind the next."""
    hardware = Hardware(Environment(), mesh)
    hardware.build(CATALOGUE)
    router = hardware.components["mesh.r0c0"]
    graph = nx.DiGraph()
    for source in range(mesh.places):
        for goal in range(mesh.places):
            path = mesh.route(source, goal)
            steps = router.subpaths.find(path, 1).steps  # type: ignore[attr-defined]
            held = [
                [(a, b, channel) for channel in range(first, last)]
                for (a, b), (_, first, last) in zip(pairwise(path[1:-1]), steps, strict=False)
            ]
            for before, after in pairwise(held):
                graph.add_edges_from((x, y) for x in before for y in after)
    return graph


@pytest.mark.parametrize("vcs", [2, 3, 4])
@pytest.mark.parametrize("shape", [(5, 5), (3, 6), (1, 7)])
def test_no_packets_of_a_torus_can_wait_for_each_other_in_a_circle(
    vcs: int, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without classes they could, whatever the number of channels, in rings of five and more."""
    mesh = make_mesh(*shape, wrap=True, vcs=vcs)
    assert nx.is_directed_acyclic_graph(waits(mesh))
    monkeypatch.setattr(Subpaths, "_class_of_each", lambda self, steps, first, last: [None] * len(steps))
    assert not nx.is_directed_acyclic_graph(waits(mesh))


def test_without_the_dateline_a_torus_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    packets = draw(make_mesh(1, 8), "uniform", 1.0, 6, 400)
    mesh = make_mesh(1, 8, wrap=True, vcs=2, buffer_flits=2)
    assert None not in latencies(mesh, packets)
    monkeypatch.setattr(Subpaths, "_class_of_each", lambda self, steps, first, last: [None] * len(steps))
    assert latencies(mesh, packets).count(None) > 100
    without = Network(1, 8, True, vcs=2, buffer=2, dateline=False)
    assert CreditSimulator(without).latencies(packets, limit=2000).count(None) > 100


def test_a_torus_needs_two_channels_and_a_mesh_one() -> None:
    with pytest.raises(ConfigError) as caught:
        Hardware(Environment(), make_mesh(3, 3, wrap=True, vcs=1)).build(CATALOGUE)
    assert str(caught.value) == (
        "mesh.r0c1: vcs must be at least 2 where rows, columns or packages are closed to rings, or paths lead around "
        "holes of a mesh, not 1; with one, messages could wait for each other in a cycle."
    )
    packets = draw(make_mesh(3, 3), "uniform", 0.9, 5, 100)
    assert None not in latencies(make_mesh(3, 3, vcs=1, buffer_flits=1), packets)
    assert None not in latencies(
        make_mesh(2, 2, wrap=True, vcs=1, buffer_flits=1), draw(make_mesh(2, 2), "uniform", 1.0, 5, 99)
    )
