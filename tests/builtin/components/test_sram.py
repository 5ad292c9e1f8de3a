"""The scratchpad of a cube: banks, closed forms, and traffic that really reaches it."""

from __future__ import annotations

import pytest

from kernbench_builtin.components.sram import Sram
from kernbench_core.messages import MemoryReadMsg, MemoryWriteMsg, Transaction
from kernbench_core.testing import Rig, assert_ready_at
from kernbench_core.values.region import Region

EASY = {"overhead": "2 ns", "bandwidth": "4 GB/s", "latency": "6 ns", "banks": 1, "bank_bytes": "1 B"}
FOUR = {"overhead": "2 ns", "bandwidth": "4 GB/s", "latency": "6 ns", "banks": 4, "bank_bytes": "16 B"}
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


def strided(op: str, row_bytes: int, rows: int, pitch: int, base: int = 0) -> Transaction:
    return Transaction(op, (Region(base, row_bytes, rows, pitch),), rows * row_bytes, (), lambda _: None)


@pytest.mark.parametrize(
    ("pitch", "banks"), [(16, 4), (32, 2), (48, 4), (64, 1), (80, 4), (96, 2), (128, 1), (4096, 1)]
)
@pytest.mark.parametrize("op", ["read", "write"])
def test_rows_that_keep_to_few_banks_get_their_share_of_the_rate(op, pitch, banks) -> None:
    """16 rows of a word: the busiest bank serves 16 / banks of them at a quarter of the rate."""
    rig = Rig(Sram, FOUR, bandwidth=1000.0).ask(0, msg=strided(op, 16, 16, pitch))
    busiest = 16 / banks * 16 / 1.0
    assert_ready_at(rig, 1 + 2 + 6 + busiest + 1 if op == "read" else 1 + 2 + busiest + 6 + 1)


def test_requests_to_different_banks_do_not_wait_for_each_other() -> None:
    machine = Rig(Sram, FOUR, inputs=2)
    machine.ask(0, msg=transaction("read", 16), port=0).ask(0, msg=transaction("write", 16, base=16), port=1)
    machine.run()
    assert [arrival.tail for arrival in machine.arrivals] == [1 + 2 + 6 + 16 + 1] * 2


def test_requests_to_one_bank_follow_each_other() -> None:
    machine = Rig(Sram, FOUR, inputs=2)
    machine.ask(0, msg=transaction("read", 16), port=0).ask(0, msg=transaction("write", 16, base=64), port=1)
    machine.run()
    assert sorted(arrival.tail for arrival in machine.arrivals) == [26.0, 26.0 + 16]


def test_a_bank_moves_whole_words() -> None:
    rig = Rig(Sram, FOUR).ask(0, msg=transaction("write", 2, base=15))
    assert_ready_at(rig, 1 + 2 + 16 + 6 + 1)
    assert [wire.bytes_carried for wire in rig.under_test.internal_wires] == [16, 16, 0, 0]


def test_a_request_without_data_is_answered_at_once() -> None:
    machine = Rig(Sram, EASY).ask(0, msg=transaction("read", 0))
    assert_ready_at(machine, 1 + 2 + 1)
    assert machine.under_test.internal_wires[0].deliveries == 0


@pytest.mark.parametrize("op", ["read", "write"])
@pytest.mark.parametrize("nbytes", [1, 512, 4096])
def test_a_lone_chunk_of_a_pe_takes_its_closed_form(simulate, oracle, op, nbytes) -> None:
    sim = simulate("default")
    dma = "sip0.cube0.pe3.pe_dma"
    path = sim.hardware.memory_path(dma, SRAM)
    sent = sim.send(path, op, nbytes, sim.address("sram", 96))
    sim.run()
    busiest = -(-nbytes // 256) * 16
    assert sent.tail == oracle(sim.graph).round_trip(dma, SRAM, op, nbytes, busiest)


def test_traffic_of_a_pe_and_of_the_host_reaches_it_and_no_hbm(simulate) -> None:
    sim = simulate("tiny")
    base = sim.address("sram", 0)
    read = sim.move("read", Region(base, 5000), pe=2)
    sim.engine.submit(MemoryWriteMsg((Region(base + 8192, 3000),)))
    sim.engine.submit(MemoryReadMsg((Region(base + 8192, 200),)))
    sim.run()
    assert read.ended_ns > 0
    # whole words of 16 B, chunk by chunk: 5000 is 4096 + 904, and the host's own chunks begin at multiples of 4 KiB
    words = sum(-(-nbytes // 16) * 16 for nbytes in (4096, 904, 3000, 200))
    assert sum(wire.bytes_carried for wire in sim[SRAM].channel_wires) == words
    assert all(wire.bytes_carried == 0 for site in sim.sites for wire in sim[site.hbm_ctrl].channel_wires)
    assert {trip.path[0] for trip in sim.trips} == {SRAM}


def test_a_stream_reaches_the_bandwidth_of_the_port(simulate) -> None:
    sim = simulate("tiny", "components.sram.params.bandwidth=64 GB/s")
    total = 1 << 20
    streams = [sim.move("read", Region(sim.address("sram", pe * total // 4), total // 4), pe=pe) for pe in range(4)]
    sim.run()
    ideal = total / 64
    assert ideal < max(stream.ended_ns for stream in streams) < 1.02 * ideal
