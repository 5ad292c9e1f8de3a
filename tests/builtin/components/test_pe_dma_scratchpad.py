"""The DMA at the scratchpad of its PE: its own traffic, and that of others that passes."""

from __future__ import annotations

import itertools

import pytest

from kernbench_core.engine.bound import formula_latency
from kernbench_core.messages import Transaction
from kernbench_core.values.region import Region
from tests.builtin.components.dma_times import CHUNK, DESCRIPTOR, DMA, LOOK_UP, NO_WALK, SETUP, scratchpad_ns


def test_it_reaches_the_scratchpad_of_its_own_pe(simulate) -> None:
    sim = simulate("tiny")
    move = sim.move("read", Region(sim.address("tcm0", 128), 1000))
    sim.run()
    assert move.ended_ns > DESCRIPTOR + SETUP + LOOK_UP
    assert [(trip.path, trip.total) for trip in sim.trips] == [(("sip0.cube0.pe0.pe_tcm", DMA), 1000)]


@pytest.mark.parametrize("op", ["read", "write"])
def test_traffic_to_the_scratchpad_of_its_pe_passes_without_taking_a_place(simulate, op) -> None:
    sim = simulate("default", "components.pe_dma.params.servers=1")
    mine = sim.move(op, Region(sim.address("tcm1", sip=1, cube=2), 6000), pe=0)
    theirs = sim.move(op, Region(sim.address("tcm0"), 6000), pe=32 + 16 + 1)
    sim.run()
    assert mine.ended_ns > 0
    assert theirs.ended_ns > 0
    assert {trip.path[0] for trip in sim.trips} == {"sip0.cube0.pe0.pe_tcm", "sip1.cube2.pe1.pe_tcm"}
    # two chunks of its own; two requests of the other's and their answers passed
    assert sim[DMA].served == 2 + 2 * 2
    bound = formula_latency(
        sim.graph,
        sim.hardware.components,
        Transaction(op, (), 4096, sim.trips[0].path[::-1], lambda _: None),
    )
    assert min(trip.tail - trip.born for trip in sim.trips if trip.total == 4096) >= bound


@pytest.mark.parametrize("op", ["read", "write"])
@pytest.mark.parametrize("nbytes", [64, 4096])
def test_traffic_to_a_scratchpad_passes_its_dma_as_it_comes(simulate, op, nbytes) -> None:
    """A lone chunk pays its bytes once on the whole way, and takes just its lower bound."""
    sim = simulate("default")
    path = sim.hardware.memory_path(DMA, "sip0.cube0.pe5.pe_tcm")
    assert path[-2] == "sip0.cube0.pe5.pe_dma"
    sent = sim.send(path, op, nbytes, sim.address("tcm5"))
    sim.run()
    edges = [sim.graph.edges[pair] for pair in itertools.pairwise(path)]
    wires = [(nbytes + max(1, -(-nbytes // edge.payload_bytes)) * edge.header_bytes) / edge.bandwidth for edge in edges]
    nodes = [sim.graph.nodes[node] for node in path[1:-1] if sim.graph.nodes[node].kind != "pe_dma"]
    tcm = sim.graph.nodes[path[-1]].params
    there = sum(edge.latency for edge in edges) + sum(node.params["overhead"] for node in nodes)
    headers = max(edge.header_bytes / edge.bandwidth for edge in edges)
    assert sent.tail == pytest.approx(2 * there + tcm["overhead"] + tcm["latency"] + max(wires) + headers, abs=0.001)
    probe = Transaction(op, (Region(sim.address("tcm5"), nbytes),), nbytes, path, lambda _: None)
    assert sent.tail - sent.born == formula_latency(sim.graph, sim.hardware.components, probe)


def test_a_scratchpad_that_does_not_book_takes_no_time(simulate) -> None:
    """A plug-in's scratchpad may know nothing of the DMA."""
    sim = simulate("tiny", NO_WALK)
    bare = simulate("tiny", NO_WALK)
    bare[DMA]._tcm = None
    moves = [each.move("read", Region(each.own(0), CHUNK)) for each in (sim, bare)]
    sim.run()
    bare.run()
    assert moves[0].ended_ns - moves[1].ended_ns == scratchpad_ns(sim, "read")


def test_the_scratchpad_counts_what_the_dma_moves(simulate) -> None:
    sim = simulate("tiny")
    sim.move("read", Region(sim.own(0), 5 * CHUNK))
    sim.move("write", Region(sim.own(1), 3 * CHUNK))
    sim.run()
    reads, writes = sim["sip0.cube0.pe0.pe_tcm"].channel_wires
    assert (reads.bytes_carried, writes.bytes_carried) == (3 * CHUNK, 5 * CHUNK)
