"""The scratchpad of a cube: one port, closed forms, and traffic that really reaches it."""

from __future__ import annotations

import pytest

from kernbench_builtin.sram import Sram
from kernbench_core.messages import MemoryReadMsg, MemoryWriteMsg, Transaction
from kernbench_core.regions import Region
from kernbench_core.testing import Rig, assert_ready_at

EASY = {"overhead": "2 ns", "bandwidth": "4 GB/s", "latency": "6 ns"}
SRAM = "sip0.cube0.sram"


def transaction(op: str, nbytes: int, base: int = 0) -> Transaction:
    return Transaction(op, (Region(base, nbytes),) if nbytes else (), nbytes, (), lambda _: None)


def test_a_read_takes_overhead_latency_and_bytes_over_bandwidth() -> None:
    assert_ready_at(Rig(Sram, EASY).ask(0, msg=transaction("read", 100)), 1 + 2 + 6 + 25 + 1)


def test_a_write_is_taken_as_it_comes_and_acknowledged_at_its_last_byte() -> None:
    assert_ready_at(Rig(Sram, EASY).ask(0, msg=transaction("write", 100)), 1 + 2 + 25 + 6 + 1)
    slow_wire = Rig(Sram, EASY, bandwidth=2.0).ask(0, msg=transaction("write", 100))
    assert_ready_at(slow_wire, 1 + 2 + 50 + 6 + 1)


def test_reads_and_writes_share_the_port_wherever_they_go() -> None:
    machine = Rig(Sram, EASY, inputs=2)
    machine.ask(0, msg=transaction("read", 100), port=0).ask(0, msg=transaction("write", 100, base=4096), port=1)
    assert_ready_at(machine, 35.0)
    assert_ready_at(machine, 35.0 + 25, arrival=2)


def test_a_request_without_data_is_answered_at_once() -> None:
    machine = Rig(Sram, EASY).ask(0, msg=transaction("read", 0))
    assert_ready_at(machine, 1 + 2 + 1)
    assert machine.under_test.internal_wires[0].deliveries == 0


@pytest.mark.parametrize("op", ["read", "write"])
@pytest.mark.parametrize("nbytes", [1, 512, 4096])
def test_a_lone_chunk_of_a_pe_takes_its_closed_form(simulate, oracle, op, nbytes) -> None:
    sim = simulate("default")
    dma = "sip0.cube0.pe3.pe_dma"
    path = sim.ctx.memory_path(dma, SRAM)
    sent = sim.send(path, op, nbytes, sim.address("sram", 100))
    sim.run()
    assert sent.tail == oracle(sim.graph).round_trip(dma, SRAM, op, nbytes, nbytes)


def test_traffic_of_a_pe_and_of_the_host_reaches_it_and_no_hbm(simulate) -> None:
    sim = simulate("tiny")
    base = sim.address("sram", 0)
    read = sim.move("read", Region(base, 5000), pe=2)
    sim.engine.submit(MemoryWriteMsg((Region(base + 8192, 3000),)))
    sim.engine.submit(MemoryReadMsg((Region(base + 8192, 200),)))
    sim.run()
    assert read.ended_ns > 0
    assert sim[SRAM].channel_wires[0].bytes_carried == 5000 + 3000 + 200
    assert all(wire.bytes_carried == 0 for site in sim.sites for wire in sim[site.hbm_ctrl].channel_wires)
    assert {trip.path[0] for trip in sim.trips} == {SRAM}


def test_a_stream_reaches_the_bandwidth_of_the_port(simulate) -> None:
    sim = simulate("tiny", "components.sram.params.bandwidth=64 GB/s")
    total = 1 << 20
    streams = [sim.move("read", Region(sim.address("sram", pe * total // 4), total // 4), pe=pe) for pe in range(4)]
    sim.run()
    ideal = total / 64
    assert ideal < max(stream.ended_ns for stream in streams) < 1.02 * ideal
