"""The DMA of a PE: chunks in flight, one record per descriptor, bandwidth, and how far memory is."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

import kernbench_core as kb
from kernbench_core.values.region import Region
from tests.builtin.components.dma_times import CHUNK, DESCRIPTOR, DMA, LOOK_UP, NO_WALK, SETUP, WALK, scratchpad_ns

PEAK = "components.hbm_ctrl.params.efficiency=1"
READ, WRITE = "components.pe_dma.params.read_outstanding", "components.pe_dma.params.write_outstanding"


def answer_ns(sim) -> float:
    """Return how long the answer of the DMA is on the wire to its pe_cpu."""
    edge = sim.graph.edges[DMA, "sip0.cube0.pe0.pe_cpu"]
    return edge.latency + edge.header_bytes / edge.bandwidth


def chunk_ns(sim, truth, memory: str, op: str = "read", nbytes: int = CHUNK) -> float:
    """Return how long a lone chunk takes its place that lies on one page, known to the TLB or walked to for nothing."""
    there = truth.round_trip(DMA, memory, op, nbytes, nbytes // 4)
    return SETUP + LOOK_UP + there + scratchpad_ns(sim, op, nbytes)


@pytest.mark.parametrize("op", ["read", "write"])
def test_a_descriptor_of_one_chunk_takes_set_up_translation_round_trip_and_scratchpad(simulate, oracle, op) -> None:
    sim = simulate("tiny")
    move = sim.move(op, Region(sim.own(0), CHUNK))
    sim.run()
    took = DESCRIPTOR + WALK + chunk_ns(sim, oracle(sim.graph), "sip0.cube0.hbm_ctrl0", op)
    assert move.ended_ns == took + answer_ns(sim)
    (record,) = sim.engine.op_log
    assert (record.t_start, record.t_end, record.component_id) == (0.0, took, DMA)


@pytest.mark.parametrize("op", ["read", "write"])
def test_one_place_serves_chunks_one_after_another(simulate, oracle, op) -> None:
    sim = simulate("tiny", "components.pe_dma.params.servers=1", NO_WALK)
    move = sim.move(op, Region(sim.own(0), 25 * CHUNK))
    sim.run()
    each = chunk_ns(sim, oracle(sim.graph), "sip0.cube0.hbm_ctrl0", op)
    assert move.ended_ns == DESCRIPTOR + 25 * each + answer_ns(sim)


@pytest.mark.parametrize("chunk", [256, 1024, 4096])
@pytest.mark.parametrize("op", ["read", "write"])
@pytest.mark.parametrize("counts", [(1, 2, 3, 7, 16), pytest.param(range(1, 17), id="all")])
def test_bandwidth_is_outstanding_times_size_over_latency(simulate, oracle, op, chunk, counts) -> None:
    """Little's law for 1 to 16 outstanding chunks, where memory is far: exact but for those that leave together."""
    rates = []
    for outstanding in counts:
        sim = simulate(
            "tiny",
            f"components.pe_dma.params.{op}_outstanding={outstanding}",
            "components.hbm_ctrl.params.channel_latency=10 us",
            f"system.chunk_bytes={chunk} B",
            NO_WALK,
        )
        number = 16 * outstanding
        move = sim.move(op, Region(sim.own(0), number * chunk))
        sim.run()
        latency = chunk_ns(sim, oracle(sim.graph), "sip0.cube0.hbm_ctrl0", op, chunk)
        rates.append(number * chunk / (move.ended_ns - answer_ns(sim) - DESCRIPTOR))
        law = outstanding * chunk / latency
        assert law * 0.99 < rates[-1] <= law * 1.000001
    assert rates == sorted(rates)


@pytest.mark.parametrize("op", ["read", "write"])
def test_what_limits_a_saturated_stream_is_the_narrowest_place_on_its_way(simulate, op) -> None:
    """Enough outstanding: the channels of HBM, a narrower wire, or a narrower scratchpad."""
    for limit, knob in (
        (102.4, "components.pe_dma.params.servers=32"),
        (64.0, "pe.links.dma.bandwidth=64 GB/s"),
        (50.0, f"components.pe_tcm.params.{'write' if op == 'read' else 'read'}_bandwidth=50 GB/s"),
    ):
        sim = simulate("tiny", knob, "components.pe_dma.params.servers=32", NO_WALK, PEAK)
        move = sim.move(op, Region(sim.own(0), 512 * CHUNK))
        sim.run()
        assert 0.97 * limit < 512 * CHUNK / move.ended_ns <= limit


def test_bandwidth_is_what_is_outstanding_over_the_round_trip_until_the_channels_are_full(simulate, oracle) -> None:
    chunks, full = 256, 4 * 25.6
    for servers in (1, 2, 4, 8, 16, 32, 64):
        sim = simulate(
            "tiny",
            f"components.pe_dma.params.servers={servers}",
            "components.hbm_ctrl.params.channel_latency=1 us",
            NO_WALK,
            PEAK,
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


@pytest.mark.parametrize("op", ["read", "write"])
def test_a_descriptor_that_waits_for_a_place_starts_with_its_first_chunk(simulate, op) -> None:
    sim = simulate("tiny", "components.pe_dma.params.servers=1")
    sim.move(op, Region(sim.own(0), 2 * CHUNK))
    waited = sim.move(op, Region(sim.own(0), CHUNK), at_ns=10.0)
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


def test_reads_and_writes_have_places_of_their_own(simulate) -> None:
    """A write beside many reads of another slice waits for no read to end, nor the other way round."""
    for op, other in (("read", "write"), ("write", "read")):
        ends = []
        for beside in (0, 40):
            sim = simulate("default", f"components.pe_dma.params.{op}_outstanding=2", NO_WALK)
            if beside:
                sim.move(other, Region(sim.own(2), beside * CHUNK))
            move = sim.move(op, Region(sim.own(1), 4 * CHUNK), at_ns=1.0)
            sim.run()
            ends.append(move.ended_ns)
        # a request may wait for the data of eight writes on the wire to the router; one queue would take all forty
        assert ends[0] <= ends[1] < ends[0] + 8 * (CHUNK + 32) / 128 < ends[0] + 40 * CHUNK / 128 / 4


def test_places_are_bounded_for_each_direction(simulate) -> None:
    sim = simulate("tiny", f"{READ}=3", f"{WRITE}=2", NO_WALK)
    sim.move("read", Region(sim.own(2), 9 * CHUNK))
    sim.move("write", Region(sim.own(3), 9 * CHUNK))
    most = Counter()
    while sim.env.advance(1):
        out = Counter(trip.op for trip in sim[DMA].awaiting())
        most |= out
    assert most == {"read": 3, "write": 2}
    assert sim[DMA].servers == 5


def test_a_descriptor_is_set_up_once_and_each_chunk_once(simulate) -> None:
    sim = simulate("tiny", NO_WALK, "components.pe_dma.params.servers=2")
    sim.move("read", Region(sim.own(0), 3 * CHUNK))
    sim.run()
    first, second, third = sorted(sim.trips, key=lambda trip: trip.regions[0].base)
    assert first.born == second.born == DESCRIPTOR + SETUP + LOOK_UP
    assert third.born == first.tail + scratchpad_ns(sim, "read") + SETUP + LOOK_UP


FREE_SET_UP = (PEAK, NO_WALK, "components.pe_dma.params.servers=64", "components.pe_mmu.params.tlb_overhead=0 ns")


@pytest.mark.parametrize(("row_bytes", "moved"), [(32, 32), (48, 64), (64, 64), (100, 128), (256, 256), (1024, 1024)])
def test_rows_of_a_gather_cost_the_bursts_that_they_touch(simulate, row_bytes, moved) -> None:
    """A strided stream reaches row bytes / burst bytes of the peak, when its rows take turns at all channels."""
    sim = simulate("tiny", *FREE_SET_UP)
    rows = (1 << 20) // row_bytes
    pitch = 5 * 256 if moved <= 256 else 2048
    move = sim.move("read", Region(sim.own(0), row_bytes, rows, pitch))
    sim.run()
    carried = sum(wire.bytes_carried for wire in sim["sip0.cube0.hbm_ctrl0"].channel_wires)
    assert carried == rows * moved
    ideal = rows * moved / 102.4
    assert ideal < move.ended_ns < 1.06 * ideal


def test_rows_that_keep_to_one_channel_get_its_rate_only(simulate) -> None:
    sim = simulate("tiny", *FREE_SET_UP, "components.hbm_ctrl.params.channel_hash=off")
    move = sim.move("read", Region(sim.own(0), 256, 4096, 1024))
    sim.run()
    ideal = 4096 * 256 / 25.6
    assert ideal < move.ended_ns < 1.02 * ideal


@pytest.mark.parametrize("regions", [(), ((0, 0),), ((0, 0), (4096, 0))])
def test_a_descriptor_without_bytes_takes_a_set_up_and_no_transaction(simulate, regions) -> None:
    sim = simulate("tiny")
    move = sim.move("read", *[Region(sim.own(0, base), nbytes) for base, nbytes in regions])
    sim.run()
    assert move.ended_ns == DESCRIPTOR + SETUP + answer_ns(sim)
    assert sim.trips == []
    assert [(record.t_start, record.t_end) for record in sim.engine.op_log] == [(0.0, DESCRIPTOR + SETUP)]


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
    sim = simulate("tiny", "components.pe_dma.params.servers=3", NO_WALK)
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
    sim = simulate("tiny", NO_WALK)
    many_pages, one_page = Region(sim.own(0), 64, 60, 1 << 16), Region(sim.own(1), 64)
    sim.move("read", many_pages)
    sim.move("read", one_page)
    sim.run()
    born = {trip.path[0]: trip.born for trip in sim.trips}
    ready = DESCRIPTOR + SETUP
    assert born == {"sip0.cube0.hbm_ctrl0": ready + 60 * LOOK_UP, "sip0.cube0.hbm_ctrl1": ready + LOOK_UP}


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
@pytest.mark.parametrize(
    ("preset", "sets", "target"),
    [("tiny", (), 2), ("tiny", ("system.sips=2",), 7), ("default", (), 31)],
)
def test_more_bandwidth_is_never_slower(simulate, op, knob, preset, sets, target) -> None:
    took = []
    for rate in (16, 64, 256):
        sim = simulate(preset, *sets, f"{knob}={rate} GB/s")
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


def test_an_explanation_names_the_commands_that_chunks_are_of() -> None:
    def bench(rt):
        def kernel(x, y, tl):
            tl.store(y, tl.load(x, shape=(5, 1024), dtype="f32"))

        rt.launch(kernel, rt.zeros((5, 1024), "f32"), rt.empty((5, 1024), "f32"), grid=(1,))

    (launch,) = kb.run(bench, "tiny", explain=True).explain.launches
    dma = [segment for segment in launch.path if segment.place.endswith(".pe_dma") and segment.sort == "service"]
    assert {segment.call for segment in dma} == {"tl.load", "tl.store"}
