"""The DMA of a PE: chunks in flight, one record per descriptor, bandwidth, and how far memory is."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from kernbench_core.bound import formula_latency
from kernbench_core.messages import Transaction
from kernbench_core.regions import Region

DMA = "sip0.cube0.pe0.pe_dma"
#: Set-up of a chunk and look-up of one page, in ns, as the presets have them.
SETUP, LOOK_UP = 20.0, 2.0
CHUNK = 4096


def answer_ns(sim) -> float:
    """Return how long the answer of the DMA is on the wire to its pe_cpu."""
    edge = sim.graph.edges[DMA, "sip0.cube0.pe0.pe_cpu"]
    return edge.latency + edge.header_bytes / edge.bandwidth


def chunk_ns(sim, truth, memory: str, op: str = "read", nbytes: int = CHUNK) -> float:
    """Return how long a worker is at a lone chunk that lies on one page."""
    return SETUP + LOOK_UP + truth.round_trip(DMA, memory, op, nbytes, nbytes // 4)


@pytest.mark.parametrize("op", ["read", "write"])
def test_a_descriptor_of_one_chunk_takes_set_up_translation_and_a_round_trip(simulate, oracle, op) -> None:
    sim = simulate("tiny")
    move = sim.move(op, Region(sim.own(0), CHUNK))
    sim.run()
    took = chunk_ns(sim, oracle(sim.graph), "sip0.cube0.hbm_ctrl0", op)
    assert move.ended_ns == took + answer_ns(sim)
    (record,) = sim.engine.op_log
    assert (record.t_start, record.t_end, record.component_id) == (0.0, took, DMA)


@pytest.mark.parametrize("op", ["read", "write"])
def test_one_worker_serves_chunks_one_after_another(simulate, oracle, op) -> None:
    sim = simulate("tiny", "components.pe_dma.params.servers=1")
    move = sim.move(op, Region(sim.own(0), 25 * CHUNK))
    sim.run()
    assert move.ended_ns == 25 * chunk_ns(sim, oracle(sim.graph), "sip0.cube0.hbm_ctrl0", op) + answer_ns(sim)


def test_bandwidth_is_what_is_outstanding_over_the_round_trip_until_the_channels_are_full(simulate, oracle) -> None:
    chunks, full = 256, 4 * 25.6
    for servers in (1, 2, 4, 8, 16, 32, 64):
        sim = simulate(
            "tiny",
            f"components.pe_dma.params.servers={servers}",
            "components.hbm_ctrl.params.channel_latency=1 us",
        )
        move = sim.move("read", Region(sim.own(0), chunks * CHUNK))
        sim.run()
        period = chunk_ns(sim, oracle(sim.graph), "sip0.cube0.hbm_ctrl0")
        limit = servers * CHUNK / period
        fill = period - CHUNK / full if limit > full else 0.0
        rate = chunks * CHUNK / (move.ended_ns - fill)
        assert rate <= min(limit, full) * 1.0001
        # chunks that leave together share the channels, so a few more in flight are needed to fill them
        assert rate > min(limit, full) * (0.98 if servers <= 8 or servers == 64 else 0.85)


def test_more_workers_are_never_slower(simulate) -> None:
    took = []
    for servers in (1, 2, 3, 5, 8, 13, 21):
        sim = simulate("tiny", f"components.pe_dma.params.servers={servers}")
        move = sim.move("read", Region(sim.own(3), 64 * CHUNK))
        sim.run()
        took.append(move.ended_ns)
    assert took == sorted(took, reverse=True)


def test_each_descriptor_is_one_record_however_many_chunks_it_has(simulate) -> None:
    sim = simulate("tiny")
    moves = [sim.move("read", Region(sim.own(0, 1 << 20), n * CHUNK), at_ns=100.0 * n) for n in (1, 7, 40)]
    sim.run()
    log = list(sim.engine.op_log)
    assert [record.params["nbytes"] for record in log] == [CHUNK, 7 * CHUNK, 40 * CHUNK]
    assert [record.t_end + answer_ns(sim) for record in log] == [move.ended_ns for move in moves]
    assert sim[DMA].served == len(sim.trips) == 48
    assert sim[DMA].busy_ns <= 8 * sim.env.now


def test_a_descriptor_that_waits_for_workers_starts_with_its_first_chunk(simulate) -> None:
    sim = simulate("tiny", "components.pe_dma.params.servers=1")
    sim.move("read", Region(sim.own(0), 2 * CHUNK))
    waited = sim.move("write", Region(sim.own(0), CHUNK), at_ns=10.0)
    sim.run()
    first, second = sim.engine.op_log
    assert second.t_start == first.t_end
    assert waited.queueing == first.t_end - 10
    assert waited.service == second.t_end - second.t_start


def test_the_ledger_of_a_descriptor_adds_up(simulate) -> None:
    sim = simulate("tiny", "components.pe_dma.params.servers=2")
    moves = [sim.move("read", Region(sim.own(pe % 4), 5 * CHUNK + pe), at_ns=3.0 * pe) for pe in range(6)]
    sim.run()
    for move in moves:
        assert move.propagation + move.serialisation + move.overhead + move.queueing + move.service == (
            move.tail - move.born
        )


def test_rows_are_gathered_into_chunks(simulate) -> None:
    sim = simulate("tiny")
    sim.move("read", Region(sim.own(1, 64), row_bytes=128, rows=64, pitch=512))
    sim.run()
    assert [(trip.total, trip.regions) for trip in sim.trips] == [
        (4096, (Region(sim.own(1, 64 + half * 32 * 512), 128, 32, 512),)) for half in (0, 1)
    ]


@pytest.mark.parametrize("regions", [(), ((0, 0),), ((0, 0), (4096, 0))])
def test_a_descriptor_without_bytes_takes_a_set_up_and_no_transaction(simulate, regions) -> None:
    sim = simulate("tiny")
    move = sim.move("read", *[Region(sim.own(0, base), nbytes) for base, nbytes in regions])
    sim.run()
    assert move.ended_ns == SETUP + answer_ns(sim)
    assert sim.trips == []
    assert [(record.t_start, record.t_end) for record in sim.engine.op_log] == [(0.0, SETUP)]


@pytest.mark.parametrize("op", ["read", "write"])
def test_a_descriptor_may_span_controllers_cubes_and_packages(simulate, op) -> None:
    sim = simulate("default")
    targets = [0, 3, 9, 31, 32, 63]
    sim.move(op, *[Region(sim.own(pe, 256), 5000 + pe) for pe in targets], Region(sim.address("sram"), 10))
    sim.run()
    carried: Counter[str] = Counter()
    for trip in sim.trips:
        carried[trip.path[0]] += trip.total
    assert carried == {sim.sites[pe].hbm_ctrl: 5000 + pe for pe in targets} | {"sip0.cube0.sram": 10}
    assert len(sim.engine.op_log) == 1


def test_it_says_which_chunks_are_out(simulate) -> None:
    sim = simulate("tiny", "components.pe_dma.params.servers=3")
    sim.move("read", Region(sim.own(2), 5 * CHUNK))
    while sim.env.now < 60 and sim.env.advance(1):
        pass
    out = sim[DMA].awaiting()
    assert [(trip.op, trip.total, trip.regions[0].base - sim.own(2)) for trip in out] == [
        ("read", CHUNK, number * CHUNK) for number in range(3)
    ]
    assert len(sim[DMA].waiting) == 2
    sim.run()
    assert sim[DMA].awaiting() == ()


def test_set_up_times_are_kept_on_the_time_grid(simulate) -> None:
    sim = simulate("tiny", "components.pe_dma.params.overhead=0.1 ns", "components.pe_mmu.params.tlb_overhead=0.3 ns")
    sim.move("read", Region(sim.own(3, 100), 6 * CHUNK))
    sim.run()
    assert all((trip.born * 65536).is_integer() and (trip.tail * 65536).is_integer() for trip in sim.trips)


def test_a_chunk_leaves_when_its_own_translation_is_done(simulate) -> None:
    sim = simulate("tiny")
    many_pages, one_page = Region(sim.own(0), 64, 60, 1 << 16), Region(sim.own(1), 64)
    sim.move("read", many_pages)
    sim.move("read", one_page)
    sim.run()
    born = {trip.path[0]: trip.born for trip in sim.trips}
    assert born == {"sip0.cube0.hbm_ctrl0": SETUP + 60 * LOOK_UP, "sip0.cube0.hbm_ctrl1": SETUP + LOOK_UP}


def rings(sim) -> list[list[int]]:
    """Group the PEs by how far their slices are from PE 0: itself, its cube, its package, the others."""
    home = sim.sites[0]
    found: list[list[int]] = [[], [], [], []]
    for site in sim.sites:
        ring = 0 if site == home else 1 if (site.sip, site.cube) == (0, 0) else 2 if site.sip == 0 else 3
        found[ring].append(site.index)
    return [ring for ring in found if ring]


@pytest.mark.parametrize("preset", ["tiny", "default"])
@pytest.mark.parametrize("op", ["read", "write"])
@pytest.mark.parametrize("nbytes", [64, 4096])
def test_farther_memory_is_never_faster(simulate, preset, op, nbytes) -> None:
    sim = simulate(preset)
    moves = {
        site.index: sim.move(op, Region(sim.own(site.index), nbytes), at_ns=100_000.0 * site.index)
        for site in sim.sites
    }
    sim.run()
    took = {pe: move.ended_ns - 100_000.0 * pe for pe, move in moves.items()}
    times = [[took[pe] for pe in ring] for ring in rings(sim)]
    for near, far in itertools.pairwise(times):
        assert max(near) < min(far)


@pytest.mark.parametrize("preset", ["tiny", "default"])
def test_among_slices_of_a_cube_more_wire_latency_takes_longer(simulate, oracle, preset) -> None:
    sim = simulate(preset)
    truth = oracle(sim.graph)
    here = [site for site in sim.sites if (site.sip, site.cube) == (0, 0)]
    moves = [sim.move("read", Region(sim.own(site.index), 256), at_ns=10_000.0 * site.index) for site in here]
    sim.run()
    by_distance = sorted(
        (truth.fixed(truth.path(DMA, site.hbm_ctrl)), move.ended_ns - 10_000.0 * site.index)
        for site, move in zip(here, moves, strict=True)
    )
    took = [ns for _, ns in by_distance]
    assert took == sorted(took)
    assert took[0] < took[-1]


@pytest.mark.parametrize("op", ["read", "write"])
@pytest.mark.parametrize(
    "knob", ["cube.hbm.link.bandwidth", "pe.links.dma.bandwidth", "components.hbm_ctrl.params.channel_bandwidth"]
)
@pytest.mark.parametrize(("preset", "target"), [("tiny", 2), ("default", 31)])
def test_more_bandwidth_is_never_slower(simulate, op, knob, preset, target) -> None:
    took = []
    for rate in (16, 32, 64, 128, 256):
        sim = simulate(preset, f"{knob}={rate} GB/s")
        move = sim.move(op, Region(sim.own(target), 32 * CHUNK))
        sim.run()
        took.append(move.ended_ns)
    assert took == sorted(took, reverse=True)
    assert took[0] > took[-1]


def test_all_pes_on_their_own_slices_do_not_disturb_each_other(simulate) -> None:
    alone = simulate("default")
    single = alone.move("read", Region(alone.own(0), 64 * CHUNK))
    alone.run()
    together = simulate("default")
    moves = [together.move("read", Region(together.own(pe), 64 * CHUNK), pe=pe) for pe in range(64)]
    together.run()
    assert {move.ended_ns for move in moves} == {single.ended_ns}


def test_it_reaches_the_scratchpad_of_its_own_pe(simulate) -> None:
    sim = simulate("tiny")
    move = sim.move("read", Region(sim.address("tcm0", 128), 1000))
    sim.run()
    assert move.ended_ns > SETUP + LOOK_UP
    assert [(trip.path, trip.total) for trip in sim.trips] == [(("sip0.cube0.pe0.pe_tcm", DMA), 1000)]


@pytest.mark.parametrize("op", ["read", "write"])
def test_traffic_to_the_scratchpad_of_its_pe_passes_without_taking_a_worker(simulate, op) -> None:
    sim = simulate("default", "components.pe_dma.params.servers=1")
    mine = sim.move(op, Region(sim.address("tcm1", sip=1, cube=2), 6000), pe=0)
    theirs = sim.move(op, Region(sim.address("tcm0"), 6000), pe=32 + 16 + 1)
    sim.run()
    assert mine.ended_ns > 0
    assert theirs.ended_ns > 0
    assert {trip.path[0] for trip in sim.trips} == {"sip0.cube0.pe0.pe_tcm", "sip1.cube2.pe1.pe_tcm"}
    assert sim[DMA].served == 2
    bound = formula_latency(
        sim.graph,
        sim.ctx.components,
        Transaction(op, (), 4096, sim.trips[0].path[::-1], lambda _: None),
    )
    assert min(trip.tail - trip.born for trip in sim.trips if trip.total == 4096) >= bound
