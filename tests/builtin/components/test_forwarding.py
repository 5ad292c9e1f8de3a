"""Forwarding nodes: fixed latency, cut-through, limited by their wires alone."""

from __future__ import annotations

import pytest

from kernbench_builtin.components.forwarding import Forwarding
from kernbench_core.testing import Harness, Probe, Rig, assert_ready_at, edge, line, place
from kernbench_core.units import GRID_NS


class HeadProbe(Probe):
    """Take messages at their first byte."""

    ON_HEAD = True


def test_head_and_tail_pass_with_the_overhead_and_the_bytes_are_charged_once() -> None:
    nodes = {"a": Probe, "hop": place(Forwarding, overhead="5 ns"), "b": Probe}
    edges = (edge("a", "hop", bandwidth=10, latency=2), edge("hop", "b", bandwidth=100, latency=2))
    machine = Harness(nodes, edges)
    machine.send(("a", "hop", "b"), 0, 100)
    assert_ready_at(machine, 2 + 5 + 2 + 10)


def test_the_first_byte_leaves_before_the_last_has_come() -> None:
    nodes = {"a": Probe, "hop": place(Forwarding, overhead="5 ns"), "b": HeadProbe}
    machine = Harness(nodes, (edge("a", "hop", bandwidth=10, latency=2), edge("hop", "b", bandwidth=100, latency=2)))
    machine.send(("a", "hop", "b"), 0, 100)
    assert_ready_at(machine, 2 + 5 + 2)
    assert (machine.arrivals[0].head, machine.arrivals[0].tail) == (9, 19)


@pytest.mark.parametrize("hops", [1, 2, 7])
def test_a_line_costs_overheads_and_latencies_and_the_slowest_wire_once(hops: int) -> None:
    names = [f"n{i}" for i in range(hops)]
    nodes = {"a": Probe, "b": Probe} | {name: place(Forwarding, overhead="3 ns") for name in names}
    machine = Harness(nodes, line("a", *names, "b", bandwidth=16, latency=0.5, payload_bytes=64, header_bytes=8))
    machine.send(("a", *names, "b"), 0, 200)
    assert_ready_at(machine, 3 * hops + 0.5 * (hops + 1) + (200 + 4 * 8) / 16)


def test_messages_to_one_output_serialise_on_its_wire_and_others_pass() -> None:
    rig = Rig(Forwarding, {"overhead": "5 ns"}, inputs=3, outputs=2, bandwidth=10, latency=2)
    rig.feed(0, 100, port=0).feed(0, 100, port=1).feed(0, 100, port=2, output=1)
    rig.run()
    assert [(a.node, a.tail) for a in rig.arrivals] == [("out0", 19), ("out1", 19), ("out0", 29)]
    first, second = (a.message for a in rig.arrivals if a.node == "out0")
    assert (first.queueing, second.queueing) == (0, 10)


def test_directions_are_independent() -> None:
    rig = Rig(Forwarding, {"overhead": "5 ns"}, bandwidth=10, latency=2)
    rig.feed(0, 1000).send(("out0", "under_test", "in0"), 0, 1000)
    rig.run()
    assert [a.tail for a in rig.arrivals] == [109, 109]


def test_small_messages_do_not_crawl() -> None:
    rig = Rig(Forwarding, {"overhead": "5 ns"}, bandwidth=10, latency=2)
    for _ in range(50):
        rig.feed(0, 1)
    rig.run()
    # 0.1 ns on the wire, rounded up to the grid; the 5 ns are a latency, not an interval
    assert rig.arrivals[-1].tail == pytest.approx(2 + 5 + 2 + 50 * 0.1, abs=51 * GRID_NS)


def test_everything_on_the_way_of_memory_traffic_forwards_at_the_head(simulate) -> None:
    sim = simulate("default")
    path = sim.hardware.memory_path("host", sim.sites[-1].hbm_ctrl)
    kinds = [sim.graph.nodes[node].kind for node in path[1:-1]]
    assert {"pcie_ep", "io_noc", "io_ucie", "ucie", "router"} == set(kinds)
    assert all(isinstance(sim[node], Forwarding) and sim[node].head_rule() is True for node in path[1:-1])


def test_a_transit_cube_is_crossed_by_its_routers(simulate) -> None:
    sim = simulate("default")
    path = sim.hardware.memory_path("host", "sip1.cube3.hbm_ctrl0")
    kinds = [sim.graph.nodes[node].kind for node in path]
    transit = [sim.graph.nodes[node].kind for node in path if node.startswith("sip1.cube1.")]
    assert kinds[:4] == ["host", "pcie_ep", "io_noc", "io_ucie"]
    assert transit[0] == transit[-1] == "ucie"
    assert set(transit[1:-1]) == {"router"}
