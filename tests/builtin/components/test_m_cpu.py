"""The cube's processor: launches to its PEs in parallel, answers gathered, and a DMA of one read and one write."""

from __future__ import annotations

import itertools

import pytest

from kernbench_core.engine.bound import formula_latency
from kernbench_core.graph import EdgeKind
from kernbench_core.messages import Transaction

M_CPU = "sip0.cube0.m_cpu"
IO_CPU = "sip0.io0.io_cpu"
OVERHEAD = 5.0


def test_its_pes_get_a_launch_in_parallel(simulate, oracle) -> None:
    sim = simulate("tiny")
    request = sim.launch()
    sim.run()
    truth, nbytes = oracle(sim.graph), request.launch.nbytes
    arrived = {site.index: sim[site.pe_cpu].arrived_ns for site in sim.sites}
    reach = {site.index: truth.launch_reach([M_CPU, site.pe_cpu], nbytes) for site in sim.sites}
    leaves = {arrived[pe] - reach[pe] for pe in arrived}
    assert len(leaves) == 1


def test_it_answers_when_its_last_pe_has(simulate, answering) -> None:
    sim = simulate("tiny", cpu=answering(lambda cpu: 700.0 if "pe2" in cpu else 30.0))
    request = sim.launch()
    sim.run()
    assert sim[M_CPU].served == 1 + 4
    assert request.response.completed_ns > request.launch.target_start_ns + 700


def test_a_launch_with_arguments_passes_the_stamp_through(simulate) -> None:
    sim = simulate("default")
    request = sim.launch(range(8))
    sim.run()
    assert set(request.launch.started_ns.values()) == {request.launch.target_start_ns}


def ask(sim, op: str, nbytes: int, base: int, at_ns: float = 0.0) -> Transaction:
    """Let the io_cpu ask the m_cpu's DMA for a transfer."""
    return sim.send(sim.hardware.command_path(IO_CPU, M_CPU), op, nbytes, base, at_ns)


def served(sim, truth, op: str, nbytes: int, pe: int) -> float:
    """Return how long the DMA is at one transfer: the round trip and taking its answer in."""
    return truth.round_trip(M_CPU, sim.sites[pe].hbm_ctrl, op, nbytes, min(nbytes, 256)) + OVERHEAD


@pytest.mark.parametrize("op", ["read", "write"])
def test_a_lone_transfer_of_its_dma_takes_there_its_round_trip_and_back(simulate, oracle, op) -> None:
    sim = simulate("tiny")
    outer = ask(sim, op, 512, sim.own(3))
    sim.run()
    truth = oracle(sim.graph)
    way = truth.path(IO_CPU, M_CPU)
    there, back = (512, 0) if op == "write" else (0, 512)
    expected = truth.fixed(way) + truth.slowest(way, there) + served(sim, truth, op, 512, 3)
    expected += truth.fixed(way[::-1]) + truth.slowest(way[::-1], back)
    assert outer.tail == expected


@pytest.mark.parametrize("op", ["read", "write"])
def test_transfers_of_one_direction_are_served_one_after_another(simulate, oracle, op) -> None:
    sim = simulate("tiny")
    for pe in range(4):
        ask(sim, op, 64, sim.own(pe))
    sim.run()
    truth = oracle(sim.graph)
    inner = [trip for trip in sim.trips if trip.path[-1] == M_CPU]
    assert [trip.path[0] for trip in inner] == [site.hbm_ctrl for site in sim.sites]
    starts = [trip.born for trip in inner]
    gaps = [b - a for a, b in itertools.pairwise(starts)]
    # from the second on a request leaves behind the answer to the one before, on the one wire of the m_cpu
    answer = truth.slowest([M_CPU, "sip0.cube0.r1c0"], 64 if op == "read" else 0)
    assert gaps == [served(sim, truth, op, 64, pe) + (answer if pe else 0.0) for pe in range(3)]


def test_a_read_and_a_write_overlap(simulate) -> None:
    sim = simulate("tiny")
    read, write = ask(sim, "read", 4096, sim.own(0)), ask(sim, "write", 4096, sim.own(3))
    sim.run()
    inner = {trip.op: trip for trip in sim.trips if trip.path[-1] == M_CPU}
    assert inner["write"].born < inner["read"].tail
    assert inner["read"].born < inner["write"].tail
    alone = []
    for op, pe in (("read", 0), ("write", 3)):
        single = simulate("tiny")
        alone.append(ask(single, op, 4096, single.own(pe)))
        single.run()
    assert max(read.tail, write.tail) < 0.75 * sum(single.tail for single in alone)


def test_a_transfer_of_its_dma_uses_memory_paths_only_and_by_passes_no_router(simulate) -> None:
    sim = simulate("tiny")
    ask(sim, "read", 64, sim.own(3))
    ask(sim, "write", 64, sim.address("sram"))
    sim.run()
    for trip in (trip for trip in sim.trips if trip.path[-1] == M_CPU):
        path = trip.path[::-1]
        kinds = [sim.graph.nodes[node].kind for node in path]
        assert kinds[0] == "m_cpu"
        assert set(kinds[1:-1]) == {"router"}
        used = {sim.graph.edges[pair].kind for pair in itertools.pairwise(path)}
        assert used <= {EdgeKind.ATTACH, EdgeKind.NOC, EdgeKind.HBM}


def test_memory_traffic_of_host_and_pes_by_passes_it(simulate) -> None:
    sim = simulate("default")
    for source in ("host", "sip0.cube0.pe0.pe_dma", "sip1.cube3.pe7.pe_dma"):
        for site in sim.sites:
            passed = {sim.graph.nodes[node].kind for node in sim.hardware.memory_path(source, site.hbm_ctrl)[1:-1]}
            assert passed <= {"pcie_ep", "io_noc", "io_ucie", "ucie", "router", "link"}


def test_a_transfer_is_never_quicker_than_its_bound(simulate) -> None:
    sim = simulate("tiny")
    outer = [ask(sim, op, 1000, sim.own(pe), at_ns=7.0 * pe) for pe in range(4) for op in ("read", "write")]
    sim.run()
    for trip in outer:
        bound = formula_latency(
            sim.graph,
            sim.hardware.components,
            Transaction(trip.op, trip.regions, trip.total, trip.path[::-1], lambda _: None),
        )
        assert trip.tail - trip.born >= bound


def test_it_says_what_its_dma_waits_for(simulate) -> None:
    sim = simulate("tiny")
    ask(sim, "read", 4096, sim.own(0))
    ask(sim, "read", 4096, sim.own(1))
    while len(sim.trips) < 1 and sim.env.advance(1):
        pass
    assert [(msg.op, msg.total) for msg in sim[M_CPU].awaiting()] == [("read", 4096)]
    sim.run()
    assert sim[M_CPU].awaiting() == ()
