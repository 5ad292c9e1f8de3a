"""What memories share: a message is as early as its earliest channel, as late as its latest."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from kernbench_builtin.components.channelled_memory import ChannelledMemory, Interleaving, Shares
from kernbench_core.messages import Transaction
from kernbench_core.testing import Harness, Probe, assert_ready_at, line
from kernbench_core.units import GRID_NS
from kernbench_core.values.region import Region

#: Bytes on each channel, by the base address of the request; channel 0 has 1 B/ns and 10 ns, channel 1 4 B/ns and 3 ns.
TABLE: dict[int, Shares] = {0: ((0, 100),), 1: ((1, 40),), 2: ((0, 10), (1, 40)), 3: ()}


class Uneven(ChannelledMemory):
    """Serve requests by a table, through a slow and a fast channel."""

    def __init__(self, node: Any, hardware: Any) -> None:
        super().__init__(node, hardware)
        self.channel_wires = [self.internal_wire("slow", 1.0, 10.0), self.internal_wire("fast", 4.0, 3.0)]

    def shares(self, msg: Any) -> Shares:
        return TABLE[msg.regions[0].base]


class HeadProbe(Probe):
    """Take messages at their first byte."""

    ON_HEAD = True


def machine(probe: type[Probe] = Probe) -> Harness:
    return Harness({"unit": probe, "memory": Uneven}, line("unit", "memory", bandwidth=1000.0, latency=1.0))


def request(op: str, row: int) -> Transaction:
    total = sum(nbytes for _, nbytes in TABLE[row])
    return Transaction(op, (Region(row, max(1, total)),), total, (), lambda _: None)


def test_a_read_leaves_with_the_earliest_channel_and_ends_with_the_latest() -> None:
    both = machine(HeadProbe)
    both.send(("unit", "memory"), 0, msg=request("read", 2))
    assert_ready_at(both, 1 + 3 + 1)
    assert (both.arrivals[0].head, both.arrivals[0].tail) == (1 + 3 + 1, 1 + 10 + 10 + 1)


def test_an_answer_holds_its_wire_from_its_earliest_byte_to_its_latest() -> None:
    both = machine()
    first = both.send(("unit", "memory"), 0, msg=request("read", 0))
    second = both.send(("unit", "memory"), 0, msg=request("read", 2))
    both.run()
    # the second's fast part is there before any byte of the first; its slow part waits for the first until 1 + 100
    assert second.tail == 1 + 100 + 10 + 10 + 1
    assert second.queueing == 100
    # so the first, whole at 1 + 10 + 100, goes home behind it: 100 B at 1000 B/ns, rounded up to the grid
    assert first.tail == pytest.approx(1 + 100 + 10 + 10 + 0.1 + 1, abs=GRID_NS)
    for read in (first, second):
        assert read.elapsed == read.propagation + read.serialisation + read.overhead + read.queueing


def test_a_write_is_acknowledged_when_its_latest_channel_has_it() -> None:
    both = machine()
    both.send(("unit", "memory"), 0, msg=request("write", 2))
    assert_ready_at(both, 1 + 10 + 10 + 1)


@pytest.mark.parametrize("op", ["read", "write"])
def test_channels_do_not_wait_for_each_other(op: str) -> None:
    both = machine()
    both.send(("unit", "memory"), 0, msg=request(op, 0))
    quick = both.send(("unit", "memory"), 0, msg=request(op, 1))
    both.run()
    # a write's data is 0.1 ns behind that of the first on the wire
    assert quick.tail == pytest.approx(1 + 3 + 10 + 1, abs=0.15)


def test_a_message_without_data_touches_no_channel() -> None:
    both = machine()
    both.send(("unit", "memory"), 0, msg=request("read", 3))
    assert_ready_at(both, 2.0)
    assert [wire.deliveries for wire in both.component("memory").internal_wires] == [0, 0]


def test_nothing_is_booked_on_the_wire_home_before_the_channel_delivers() -> None:
    both = machine()
    both.send(("unit", "memory"), 0, msg=request("read", 0))
    quick = both.send(("unit", "memory"), 5, msg=request("read", 1))
    both.run()
    assert quick.tail == 5 + 1 + 3 + 10 + 1


def test_shares_of_several_regions_add_up_by_channel() -> None:
    deal = Interleaving(channels=2, block=256)
    assert deal.shares((Region(0, 300), Region(512, 256), Region(256, 16))) == ((0, 512), (1, 60))
    assert deal.shares(()) == ()


def test_equal_regions_are_counted_once_and_keep_their_shares() -> None:
    deal = Interleaving(channels=4, block=64)
    strided = Region(1 << 40, 96, 7, 200)
    assert deal.shares((strided,)) == deal.shares((strided.shifted(4 * 64 * 11),)) == deal.shares((strided,))
    assert deal.shares((strided,)) != deal.shares((strided.shifted(64),))


@pytest.mark.parametrize("rows", [1, 300])
def test_what_is_remembered_does_not_grow_with_what_is_asked(rows: int) -> None:
    """Gathers make ever new regions: the second half of many takes no more room than the first."""
    deal = Interleaving(channels=4, block=256, burst=32, hash_channels=True)

    def ask(first: int) -> int:
        for at in range(first, first + 3000 // rows):
            deal.shares(tuple(Region(at * 4096, 4, 2, 4096 * at * rows + 8 * row + 16) for row in range(rows)))
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        half, whole = ask(0), ask(100000)
    finally:
        tracemalloc.stop()
    assert whole - half < 0.2 * half
