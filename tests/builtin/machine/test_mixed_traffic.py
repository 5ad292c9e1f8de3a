"""All models at once: copies, launches and DMAs over random machines keep every rule that a run must keep."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kernbench_core.engine.bound import formula_latency
from kernbench_core.host.sanity import check
from kernbench_core.messages import MemoryReadMsg, MemoryWriteMsg, MsgBase, Transaction
from kernbench_core.values.region import Region

KNOBS = {
    "system.chunk_bytes": ("1 KiB", "4 KiB", "64 KiB"),
    "sip.io_chiplets": ("1", "2"),
    "sip.ucie.bandwidth": ("64 GB/s", "256 GB/s"),
    "components.router.params.overhead": ("0 ns", "0.1 ns", "4 ns"),
    "components.m_cpu.params.overhead": ("0 ns", "0.7 ns"),
    "components.hbm_ctrl.params.channels": ("1", "3", "8"),
    "components.hbm_ctrl.params.channel_latency": ("0.1 ns", "31.9 ns"),
    "components.pe_dma.params.servers": ("1", "2", "16"),
    "components.pe_mmu.params.tlb_overhead": ("0 ns", "0.3 ns"),
}


def ledger_adds_up(msg: MsgBase) -> bool:
    parts = (msg.propagation, msg.serialisation, msg.overhead, msg.queueing, msg.service)
    return sum(parts) == msg.tail - msg.born and min(parts) >= 0


def some_region(sim: Any, rng: random.Random) -> Region:
    """Draw bytes of an HBM slice, an SRAM or a scratchpad, in one run or in rows."""
    site = rng.choice(sim.sites)
    unit = rng.choice([f"hbm{site.pe}"] * 6 + ["sram", f"tcm{site.pe}"])
    base = sim.address(unit, rng.randrange(1 << 16), sip=site.sip, cube=site.cube)
    if rng.random() < 0.5:
        return Region(base, rng.randrange(1, 3000), rng.randrange(1, 9), 4096)
    return Region(base, rng.randrange(1, 20_000))


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_random_traffic_on_random_machines_keeps_the_rules(simulate, answering, seed) -> None:
    rng = random.Random(seed)
    sets = [f"{key}={rng.choice(values)}" for key, values in KNOBS.items()]
    sim = simulate("default", *sets, cpu=answering(lambda cpu: float(len(cpu) * 97 % 1000)))
    moves = [
        sim.move(
            rng.choice(["read", "write"]),
            some_region(sim, rng),
            pe=rng.randrange(64),
            at_ns=rng.randrange(4000) / 3,
            token=rng.random() < 0.3,
        )
        for _ in range(60)
    ]
    copies = [
        rng.choice([MemoryReadMsg, MemoryWriteMsg])(
            tuple(Region(sim.own(rng.randrange(64), rng.randrange(1 << 20)), rng.randrange(1, 9000)) for _ in range(4))
        )
        for _ in range(4)
    ]
    for copy in copies:
        sim.engine.submit(copy)
    launches = [sim.launch(sorted(rng.sample(range(64), rng.randrange(1, 64)))) for _ in range(2)]
    for _ in range(6):
        site = rng.choice(sim.sites)
        way = sim.hardware.command_path(site.io_cpu, site.m_cpu)
        op, nbytes = rng.choice(["read", "write"]), rng.randrange(1, 4096)
        sim.send(way, op, nbytes, sim.own(rng.randrange(64)), at_ns=rng.randrange(2000))
    sim.run()
    assert all(request.done.fired for request in [*copies, *launches])
    assert all(ledger_adds_up(move) and move.ended_ns is not None for move in moves)
    for trip in sim.trips:
        alike = Transaction(trip.op, trip.regions, trip.total, trip.path[::-1], lambda _: None)
        assert trip.tail - trip.born >= formula_latency(sim.graph, sim.hardware.components, alike)
    for request in launches:
        assert min(request.launch.started_ns.values()) >= request.launch.target_start_ns
    assert all((wire.available_at * 65536).is_integer() and wire.busy_ns <= sim.env.now for wire in sim.hardware.wires)
    check(sim.hardware, sim.engine.get_timing_result())


def test_the_same_traffic_takes_the_same_time_again(simulate) -> None:
    ends = []
    for _ in range(2):
        rng = random.Random(7)
        sim = simulate("default")
        moves = [sim.move("read", some_region(sim, rng), pe=rng.randrange(64)) for _ in range(80)]
        sim.run()
        ends.append([move.ended_ns for move in moves])
    assert ends[0] == ends[1]
