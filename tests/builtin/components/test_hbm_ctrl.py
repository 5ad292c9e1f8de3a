"""HBM controllers: pseudo-channels, interleaving, what is acted on when, bandwidth and bounds."""

from __future__ import annotations

import random
from functools import reduce
from operator import xor

import pytest

from kernbench_builtin.components.hbm_ctrl import HbmCtrl
from kernbench_core.engine.bound import formula_latency
from kernbench_core.errors import ConfigError
from kernbench_core.host import not_modelled
from kernbench_core.messages import Transaction
from kernbench_core.testing import Harness, Probe, Rig, assert_ready_at, line, place
from kernbench_core.values.region import Region

#: A controller whose figures make sums easy, on wires of 10 B/ns and 1 ns without headers.
EASY = {
    "overhead": "8 ns",
    "channels": 2,
    "channel_bandwidth": "4 GB/s",
    "efficiency": 1.0,
    "channel_latency": "30 ns",
    "interleave_bytes": "256 B",
    "burst_bytes": "1 B",
    "channel_hash": "off",
}


def transaction(op: str, *regions: Region) -> Transaction:
    return Transaction(op, regions, sum(region.nbytes for region in regions), (), lambda _: None)


def rig(bandwidth: float = 10.0, **params: object) -> Rig:
    return Rig(HbmCtrl, {**EASY, **params}, bandwidth=bandwidth)


def test_a_read_takes_the_controller_the_channel_and_its_bytes() -> None:
    machine = rig().ask(0, msg=transaction("read", Region(0, 100)))
    # request 1 ns, controller 8, channel 30 to the first byte and 100/4 = 25 to the last, wire 1; 10 B/ns is no limit
    assert_ready_at(machine, 1 + 8 + 30 + 25 + 1)
    assert machine.arrivals[0].nbytes == 100


def test_the_data_of_a_read_leaves_as_the_channel_brings_it() -> None:
    class HeadProbe(Probe):
        ON_HEAD = True

    machine = Harness({"unit": HeadProbe, "ctrl": place(HbmCtrl, **EASY)}, line("unit", "ctrl", bandwidth=10.0))
    machine.send(("unit", "ctrl"), 0, msg=transaction("read", Region(0, 100)))
    assert_ready_at(machine, 1 + 8 + 30 + 1)
    assert (machine.arrivals[0].head, machine.arrivals[0].tail) == (40.0, 65.0)


def test_a_read_over_a_wire_that_is_slower_than_the_channels_ends_with_the_wire() -> None:
    machine = rig(bandwidth=2.0).ask(0, msg=transaction("read", Region(0, 100)))
    assert_ready_at(machine, 1 + 8 + 30 + 50 + 1)


def test_a_write_is_acted_on_when_its_first_byte_is_there() -> None:
    machine = rig(bandwidth=2.0).ask(0, msg=transaction("write", Region(0, 100)))
    # the data takes 50 ns over the wire and only 25 on the channel, which waits for the last byte, not before the first
    assert_ready_at(machine, 1 + 8 + 50 + 30 + 1)
    machine = rig(bandwidth=10.0).ask(0, msg=transaction("write", Region(0, 100)))
    assert_ready_at(machine, 1 + 8 + 25 + 30 + 1)


def test_a_write_is_acknowledged_without_payload() -> None:
    (arrival,) = rig().ask(0, msg=transaction("write", Region(0, 100))).run().arrivals
    assert (arrival.head, arrival.nbytes) == (arrival.tail, 0)


def test_two_reads_of_one_channel_serialise_and_two_of_different_channels_do_not() -> None:
    machine = rig().ask(0, msg=transaction("read", Region(0, 100))).ask(0, msg=transaction("read", Region(512, 100)))
    assert_ready_at(machine, 65.0)
    assert_ready_at(machine, 65.0 + 25, arrival=2)
    machine = rig().ask(0, msg=transaction("read", Region(0, 100))).ask(0, msg=transaction("read", Region(256, 100)))
    # the second head is at the answer wire with the first, and waits there until the first tail has passed
    assert_ready_at(machine, 65.0)
    assert_ready_at(machine, 65.0 + 10, arrival=2)


def test_reads_and_writes_share_a_channel() -> None:
    machine = rig().ask(0, msg=transaction("write", Region(0, 100))).ask(0, msg=transaction("read", Region(512, 100)))
    machine.run()
    write, read = machine.arrivals
    assert write.tail == 1 + 8 + 25 + 30 + 1
    # the request waits for the write's bytes on the wire (10 ns), then for the channel (until 34), then 30 + 25 + 1
    assert read.tail == 34 + 30 + 25 + 1


def test_a_request_without_data_is_answered_at_once_and_touches_no_channel() -> None:
    machine = rig()
    machine.ask(0, msg=transaction("read")).ask(20, msg=transaction("write"))
    assert_ready_at(machine, 1 + 8 + 1)
    assert_ready_at(machine, 20 + 1 + 8 + 1, arrival=2)
    assert [(wire.deliveries, wire.bytes_carried, wire.busy_ns) for wire in machine.under_test.internal_wires] == [
        (0, 0, 0.0)
    ] * 2


def naive_channel(turn: int, channels: int, hashed: bool) -> int:
    """Give the channel of an interleaved block: its lowest digit, or the five lowest with no carry between them."""
    digits = [turn // channels**place % channels for place in range(5 if hashed else 1)]
    return reduce(xor, digits)


def naive_shares(
    regions: tuple[Region, ...], channels: int, block: int, burst: int = 32, hashed: bool = True
) -> dict[int, int]:
    """Count bytes per channel, one byte at a time; what shares a burst going upwards is moved once."""
    found: dict[int, int] = {}
    for region in regions:
        moved = set()
        for row in range(region.rows):
            for column in range(region.row_bytes):
                unit = (region.base + row * region.pitch + column) // burst
                once = unit if region.pitch > 0 else (row, unit)
                if once not in moved:
                    moved.add(once)
                    channel = naive_channel(unit * burst // block, channels, hashed)
                    found[channel] = found.get(channel, 0) + burst
    return found


@pytest.mark.parametrize(("channels", "chosen"), [(1, "auto"), (3, "auto"), (4, "off"), (4, "on"), (4, "auto")])
@pytest.mark.parametrize("block", [32, 256])
@pytest.mark.parametrize("burst", [1, 32])
def test_bytes_go_to_the_channels_that_a_byte_by_byte_count_gives(
    channels: int, chosen: str, block: int, burst: int
) -> None:
    params = {**EASY, "channels": channels, "channel_hash": chosen}
    params |= {"interleave_bytes": f"{block} B", "burst_bytes": f"{burst} B"}
    ctrl = Rig(HbmCtrl, params).under_test
    rng = random.Random(channels * block)
    for _ in range(60):
        regions = tuple(
            Region(rng.randrange(5000), rng.randrange(1, 700), rng.randrange(1, 6), rng.randrange(-900, 900))
            if rng.random() < 0.7
            else Region(rng.randrange(5000), rng.randrange(1, 4096))
            for _ in range(rng.randrange(1, 4))
        )
        regions = tuple(r if r.start >= 0 else Region(r.base + 9000, r.row_bytes, r.rows, r.pitch) for r in regions)
        shares = ctrl.shares(transaction("read", *regions))  # type: ignore[attr-defined]
        assert dict(shares) == naive_shares(regions, channels, block, burst, channels == 4 and chosen != "off")
        assert list(shares) == sorted(shares)


@pytest.mark.parametrize("preset", ["tiny", "default"])
@pytest.mark.parametrize("op", ["read", "write"])
@pytest.mark.parametrize("nbytes", [1, 64, 256, 1000, 4096])
def test_a_lone_chunk_takes_its_lower_bound_which_is_the_closed_form(simulate, oracle, preset, op, nbytes) -> None:
    sim = simulate(preset)
    sites = [sim.sites[0]] + [sim.sites[i] for i in (1, len(sim.sites) // 2, len(sim.sites) - 1)]
    per_channel = max(naive_shares((Region(64, nbytes),), 4, 256).values())
    truth = oracle(sim.graph)
    for number, target in enumerate(sites):
        dma = sim.sites[0].prefix + ".pe_dma"
        path = sim.hardware.memory_path(dma, target.hbm_ctrl)
        base = sim.own(target.index, 64)
        sent = sim.send(path, op, nbytes, base, at_ns=number * 100_000.0)
        copy = Transaction(op, sent.regions, nbytes, path, lambda _: None)
        bound = formula_latency(sim.graph, sim.hardware.components, copy)
        assert bound == truth.round_trip(dma, target.hbm_ctrl, op, nbytes, per_channel)
    sim.run()
    assert [trip.tail - trip.born for trip in sim.trips] == [
        truth.round_trip(sim.sites[0].prefix + ".pe_dma", site.hbm_ctrl, op, nbytes, per_channel) for site in sites
    ]


@pytest.mark.parametrize("op", ["read", "write"])
def test_a_long_stream_of_chunks_reaches_the_bandwidth_of_all_channels(simulate, op) -> None:
    sim = simulate("tiny", "components.pe_dma.params.servers=32")
    total = 4096 * 1024
    stream = sim.move(op, Region(sim.own(0), total))
    sim.run()
    ideal = total / (4 * 25.6 * 0.923)
    assert ideal < stream.ended_ns < ideal * 1.02
    for wire in sim["sip0.cube0.hbm_ctrl0"].channel_wires:
        assert wire.bytes_carried == total // 4
        assert wire.busy_ns <= stream.ended_ns


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_under_random_traffic_bytes_are_conserved_and_no_round_trip_is_below_its_bound(simulate, oracle, seed) -> None:
    sim, rng = simulate("default"), random.Random(seed)
    wanted = 0
    for _ in range(150):
        pe, target = rng.randrange(len(sim.sites)), rng.randrange(len(sim.sites))
        region = Region(sim.own(target, rng.randrange(1 << 20)), rng.randrange(1, 2000), rng.randrange(1, 9), 2048)
        sim.move(rng.choice(["read", "write"]), region, pe=pe, at_ns=rng.randrange(3000) / 2)
        wanted += region.nbytes
    sim.run()
    channels = [wire for site in sim.sites for wire in sim[site.hbm_ctrl].channel_wires]
    assert sum(trip.total for trip in sim.trips) == wanted
    bursts = sum(sum(naive_shares(trip.regions, 4, 256).values()) for trip in sim.trips)
    assert sum(wire.bytes_carried for wire in channels) == bursts > wanted
    assert all(wire.busy_ns <= sim.env.now for wire in sim.hardware.wires)
    assert any(trip.queueing > 0 for trip in sim.trips)
    truth = oracle(sim.graph)
    for trip in sim.trips:
        there = trip.path[::-1]
        per_channel = max(naive_shares(trip.regions, 4, 256).values())
        floor = truth.round_trip(there[0], there[-1], trip.op, trip.total, per_channel)
        assert trip.tail - trip.born >= floor


def test_more_channel_bandwidth_is_never_slower(simulate) -> None:
    took = []
    for rate in (6.4, 12.8, 25.6, 51.2, 102.4):
        sim = simulate("tiny", f"components.hbm_ctrl.params.channel_bandwidth={rate} GB/s")
        reads = [sim.move("read", Region(sim.own(pe % 2), 1 << 16), pe=pe) for pe in range(4)]
        sim.run()
        took.append(max(read.ended_ns for read in reads))
    assert took == sorted(took, reverse=True)
    assert took[0] > took[-1]


def test_short_rows_waste_bandwidth() -> None:
    """4 of every 64 bytes cost a burst of 32 each: 8 times the bytes on the channel, and none more on the wire."""
    dense = rig(burst_bytes="32 B").ask(0, msg=transaction("read", Region(0, 128)))
    sparse = rig(burst_bytes="32 B").ask(0, msg=transaction("read", Region(0, 4, 32, 64)))
    for machine in (dense, sparse):
        machine.run()
    assert [m.arrivals[0].nbytes for m in (dense, sparse)] == [128, 128]
    carried = [sum(w.bytes_carried for w in m.under_test.internal_wires) for m in (dense, sparse)]
    assert carried == [128, 32 * 32]
    assert sparse.arrivals[0].tail - dense.arrivals[0].tail == 32 * 32 / 2 / 4 - 128 / 4


def test_a_burst_must_divide_the_interleaving() -> None:
    with pytest.raises(ConfigError) as caught:
        rig(burst_bytes="48 B")
    assert str(caught.value) == (
        "under_test: interleave_bytes must be a multiple of burst_bytes, not 256 of 48; correct one."
    )


@pytest.mark.parametrize("channels", [3, 6, 20])
def test_a_hash_of_channels_needs_a_power_of_two_of_them_and_without_one_says_so(simulate, channels) -> None:
    with pytest.raises(ConfigError) as caught:
        rig(channels=channels, channel_hash="on")
    assert str(caught.value) == (
        f"under_test: channels must be a power of two with channel_hash on, not {channels}; correct one."
    )
    said = (
        f"No hash spreads rows over the channels, which it needs a power of two of and has {channels}: at some pitches "
        "few of them serve all."
    )
    for impl in ("builtin.hbm_ctrl", "builtin.hbm_ctrl_bank"):
        chosen = f"components.hbm_ctrl.impl={impl}"
        for settings, told in (((), 1), (("components.hbm_ctrl.params.channel_hash=off",), 0)):
            sim = simulate("tiny", chosen, f"components.hbm_ctrl.params.channels={channels}", *settings)
            sim.move("read", Region(sim.own(0), 64))
            sim.run()
            ignored = not_modelled(sim.hardware.components.values())
            assert [(each.component, each.count) for each in ignored if each.sentence == said] == [(impl, 1)] * told


def test_tools_drive_it_over_256_mib() -> None:
    """The bound that `--stride` and `--chunk` are held to."""
    assert rig().under_test.geometry().span_bytes == 256 << 20
