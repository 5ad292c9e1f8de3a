"""Forwarding nodes: fixed latency, cut-through, limited by their wires alone."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kernbench_builtin.components.forwarding import Forwarding
from kernbench_core.engine.bound import formula_latency
from kernbench_core.messages import Transaction
from kernbench_core.testing import Harness, Probe, Rig, assert_ready_at, edge, line, place
from kernbench_core.units import GRID_NS
from kernbench_core.units import grid_ceil as on_grid


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


@pytest.mark.parametrize("hops", [1, 2, 5])
def test_what_stores_and_forwards_charges_the_bytes_on_each_wire(hops: int) -> None:
    names = [f"n{i}" for i in range(hops)]
    rates = [16.0 * (i + 1) for i in range(hops + 1)]
    ids = ["a", *names, "b"]
    nodes = {"a": Probe, "b": Probe} | {
        name: place(Forwarding, overhead="3 ns", store_and_forward=True) for name in names
    }
    wires = [edge(x, y, bandwidth=rate, latency=0.5) for (x, y), rate in zip(pairwise(ids), rates, strict=True)]
    machine = Harness(nodes, wires)
    machine.send(tuple(ids), 0, 192)
    took = 3 * hops + 0.5 * (hops + 1) + sum(on_grid(192 / rate) for rate in rates)
    assert_ready_at(machine, took)
    (arrival,) = machine.arrivals
    parts = arrival.message
    assert (parts.overhead, parts.propagation, parts.queueing) == (3 * hops, 0.5 * (hops + 1), 0)
    assert parts.serialisation == took - 3.5 * hops - 0.5


def test_a_head_must_not_leave_before_the_tail_is_in() -> None:
    nodes = {"a": Probe, "hop": place(Forwarding, overhead="5 ns", store_and_forward=True), "b": HeadProbe}
    machine = Harness(nodes, (edge("a", "hop", bandwidth=10, latency=2), edge("hop", "b", bandwidth=100, latency=2)))
    machine.send(("a", "hop", "b"), 0, 100)
    assert_ready_at(machine, 2 + 10 + 5 + 2)
    assert (machine.arrivals[0].head, machine.arrivals[0].tail) == (19, 20)


@pytest.mark.parametrize("nbytes", [64, 4096])
@pytest.mark.parametrize("op", ["read", "write"])
def test_the_lower_bound_of_a_way_over_a_switch_that_stores_is_exact(simulate, oracle, op: str, nbytes: int) -> None:
    """Each leg between places that store costs its own slowest wire: from the graph alone, and from the formula."""
    sim = simulate(
        "tiny", "system.sips=2", "system.network.topology=switch", "components.switch.params.store_and_forward=true"
    )
    there = sim.hardware.memory_path("sip0.cube0.pe0.pe_dma", "sip1.cube0.hbm_ctrl0")
    base = sim.address("hbm0", sip=1)
    transaction = sim.send(there, op, nbytes, base)
    sim.run()
    assert [node for node in there if sim.graph.nodes[node].kind == "switch"], "it goes over the switch"
    truth = oracle(sim.graph)
    cut = next(i for i, node in enumerate(there) if sim.graph.nodes[node].kind == "switch")
    near, far = there[: cut + 1], there[cut:]
    hbm = sim.graph.nodes[there[-1]].params
    share = min(nbytes, 256) * -(-nbytes // (256 * hbm["channels"]))
    channel = on_grid(share / (hbm["channel_bandwidth"] * hbm["efficiency"]))
    data, other = (nbytes, 0) if op == "write" else (0, nbytes)
    legs = [truth.slowest(near, data), truth.slowest(far, data), truth.slowest(far[::-1], other)]
    legs[1 if op == "write" else 2] = max(channel, legs[1 if op == "write" else 2])
    expected = sum(legs) + truth.slowest(near[::-1], other) + on_grid(hbm["channel_latency"])
    expected += truth.fixed(there) + truth.fixed(there[::-1], last=False)
    assert transaction.elapsed == expected
    copy = Transaction(op, transaction.regions, nbytes, tuple(there), print)
    assert formula_latency(sim.graph, sim.hardware.components, copy) == expected


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
