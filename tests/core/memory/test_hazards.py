"""Every kind of hazard is found with both lines, and programs whose uses are ordered list none."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernbench_core.kernel.compute_commands import MathCmd, Operand
from kernbench_core.values.value import ResultValue
from tests.core.memory.watched_rig import Watched

X = np.arange(256, dtype=np.float32).reshape(16, 16)


def line(kernel: Callable[..., Any], offset: int) -> str:
    """Spell a line of a kernel, counted from its `def`."""
    return f"{__file__}:{kernel.__code__.co_firstlineno + offset}"


def test_a_read_of_a_foreign_write_in_flight() -> None:
    """PE 1 loads what PE 0 is storing: both lines, PEs, times and the first element that both use."""

    def kernel(x: Any, tl: Any) -> None:
        tile = tl.zeros((4, 4), "f32")
        if tl.program_id(0) == 0:
            tl.store(x + 16 * 2 + 4, tile, strides=(16, 1))
        else:
            tl.load(x, shape=(16, 6), strides=(16, 1))

    rig = Watched()
    rig.launch_all((kernel, {"x": rig.tensor(X, "x")}))
    (hazard,) = rig.found()
    assert (hazard.kind, hazard.name, hazard.index, hazard.byte) == ("unordered_read", "x", (2, 4), 4 * 36)
    assert (hazard.nbytes, hazard.count) == (4 * 2 * 4, 1)
    store, load = hazard.first, hazard.second
    assert (store.call, store.pe, store.line, store.op_id) == ("tl.store", "sip0.cube0.pe0", line(kernel, 3), (0, 1))
    assert (load.call, load.pe, load.line, load.op_id) == ("tl.load", "sip0.cube0.pe1", line(kernel, 5), (1, 1))
    assert (store.issued_ns, store.landed_ns) == (12.0, 112.0)  # 1 ns to issue, 10 ns of math, 1 ns, then 100 ns of DMA
    assert (store.writes, load.writes) == (True, False)
    assert hazard.lines() == (
        "a read and a write that nothing orders: x[2, 4], 32 B",
        f"  tl.store at {line(kernel, 3)} on sip0.cube0.pe0, 12 ns to 112 ns",
        f"  tl.load at {line(kernel, 5)} on sip0.cube0.pe1, 12 ns to 112 ns",
        "  a message (tl.send, tl.recv) or a launch that the host waits for in between orders them",
    )


@pytest.mark.parametrize("delay", [0, 9, 10, 100])
def test_a_read_long_after_the_write_has_landed_is_one_as_well(delay: int) -> None:
    """The write is in flight from 12 ns to 112 ns; math of 11 ns each puts off the load, which nothing orders."""

    def kernel(x: Any, tl: Any) -> None:
        tile = tl.zeros((4, 4), "f32")
        if tl.program_id(0) == 0:
            tl.store(x, tile)
            return
        for _ in range(delay):
            tile = tile + 1.0
        tl.load(x, shape=(4, 4))

    rig = Watched()
    rig.launch_all((kernel, {"x": rig.tensor(X, "x")}))
    (hazard,) = rig.found()
    assert (hazard.kind, hazard.first.writes, hazard.second.writes) == ("unordered_read", True, False)
    assert hazard.first.landed_ns == 112.0
    assert hazard.second.issued_ns == 12 + 11 * delay


def test_a_write_long_after_a_foreign_read_is_complete() -> None:
    """The load is over after 101 ns, and the store begins long after that."""

    def kernel(x: Any, tl: Any) -> None:
        if tl.program_id(0) == 0:
            tl.load(x, shape=(4, 4))
            return
        tile = tl.zeros((4, 4), "f32")
        for _ in range(100):
            tile = tile + 1.0
        tl.store(x, tile)

    rig = Watched()
    rig.launch_all((kernel, {"x": rig.tensor(X, "x")}))
    (hazard,) = rig.found()
    assert (hazard.kind, hazard.first.call, hazard.second.call) == ("unordered_read", "tl.load", "tl.store")
    assert hazard.first.landed_ns == 101.0 < hazard.second.issued_ns


def test_two_reads_are_none() -> None:
    """Neither of them writes."""

    def kernel(x: Any, tl: Any) -> None:
        tl.load(x, shape=(4, 4))

    rig = Watched()
    rig.launch_all((kernel, {"x": rig.tensor(X, "x")}))
    assert rig.found() == ()


def test_uses_between_each_others_rows_share_no_byte() -> None:
    """Columns 0 to 3 of all rows and columns 4 to 7: the spans overlap, and no byte is in both."""

    def kernel(x: Any, tl: Any) -> None:
        pe = tl.program_id(0)
        tl.store(x + 4 * pe, tl.zeros((16, 4), "f32"), strides=(16, 1))
        tl.load(x + 4 * pe, shape=(16, 4), strides=(16, 1))

    rig = Watched()
    rig.launch_all((kernel, {"x": rig.tensor(X, "x")}))
    assert rig.found() == ()


def test_a_write_into_a_foreign_read_in_flight() -> None:
    """A load samples at its completion, so a store that is issued during it is seen: also a race."""

    def kernel(x: Any, tl: Any) -> None:
        if tl.program_id(0) == 0:
            tl.load(x, shape=(4, 4))
        else:
            tl.store(x, tl.zeros((4, 4), "f32"))

    rig = Watched()
    rig.launch_all((kernel, {"x": rig.tensor(X, "x")}))
    (hazard,) = rig.found()
    assert (hazard.kind, hazard.first.call, hazard.second.call) == ("unordered_read", "tl.load", "tl.store")


def test_unordered_writes_are_found_at_any_distance_in_time() -> None:
    """The second store begins long after the first has landed, and still nothing says who is last."""

    def kernel(x: Any, tl: Any) -> None:
        tile = tl.zeros((4, 4), "f32")
        for _ in range(50 * tl.program_id(0)):
            tile = tile + 1.0
        tl.store(x, tile)

    rig = Watched()
    rig.launch_all((kernel, {"x": rig.tensor(X, "x")}))
    (hazard,) = rig.found()
    assert (hazard.kind, hazard.index, hazard.nbytes) == ("unordered_writes", (0, 0), 64)
    assert hazard.first.landed_ns is not None
    assert hazard.first.landed_ns < hazard.second.issued_ns
    assert hazard.first.line == hazard.second.line == line(kernel, 4)


def test_alike_hazards_are_one_line_with_a_count() -> None:
    """Eight PEs that store three times to one place: each newcomer meets the last of each other PE."""

    def kernel(x: Any, tl: Any) -> None:
        for _ in range(3):
            tl.store(x, tl.zeros((4,), "f32"))

    rig = Watched(8)
    rig.launch_all((kernel, {"x": rig.tensor(X, "x")}))
    (hazard,) = rig.found()
    assert hazard.count == sum(range(8)) + 2 * 8 * 7
    assert str(hazard) == "unordered writes: x[0, 0], 16 B, 140 such pairs"


def test_a_recycled_range_of_the_scratchpad() -> None:
    """A plug-in's command that does not hold the block that it reads: freed, handed out, and still being read."""

    def kernel(x: Any, tl: Any) -> None:
        tile = tl.load(x, shape=(4, 4))
        out = tl.zeros((4, 4), "f32")
        op_id = tl.op_id()
        reads = (Operand(tile.value, tile.block.region),)
        value = ResultValue(op_id, (4, 4), "f32")
        tl.issue(MathCmd(op_id, "exp", tile.site, (out.block,), reads, value, {}, False), wait=False)
        tl.free(tile)
        tl.full((2, 2), 1.0, "f32")

    rig = Watched(1)
    rig.launch_all((kernel, {"x": rig.tensor(X, "x")}))
    (hazard,) = rig.found()
    assert (hazard.kind, hazard.name, hazard.index, hazard.byte) == ("recycled_tcm", "TCM of sip0.cube0.pe0", None, 0)
    assert (hazard.first.op_id, hazard.second.op_id) == ((0, 2), None)
    assert (hazard.second.call, hazard.second.line) == ("tl.full", line(kernel, 8))
    assert hazard.nbytes == 16
    assert str(hazard) == "TCM range used after it was handed out again: TCM of sip0.cube0.pe0 at offset 0x0, 16 B"


# What orders -----------------------------------------------------------------------------------------------


def mine(x: Any, tl: Any) -> None:
    """Store, load and store again one's own rows, waiting for nothing in between."""
    rows = x + 64 * tl.program_id(0)
    tl.store(rows, tl.exp(tl.load(rows, shape=(4, 16))))
    tile = tl.load(rows, shape=(4, 16), wait=False)
    tl.store(rows, tile)


def shifted(x: Any, tl: Any) -> None:
    """Do the same on the rows of the next PE."""
    rows = x + 64 * (1 - tl.program_id(0))
    tl.store(rows, tl.load(rows, shape=(4, 16)))


def test_own_uses_are_in_program_order() -> None:
    """A PE's un-waited store is visible to its own loads; other PEs have other rows."""
    rig = Watched()
    rig.launch_all((mine, {"x": rig.tensor(X)}))
    assert rig.found() == ()


def test_a_launch_that_was_waited_for_orders() -> None:
    """The next launch may use everything, on any PE."""
    rig = Watched()
    given = {"x": rig.tensor(X)}
    rig.launch_all((mine, given))
    rig.launch_all((shifted, given))
    assert rig.found() == ()


def test_launches_that_were_not_waited_for_order_each_pe_with_itself_only() -> None:
    """They queue at each PE: own rows are safe, rows of another PE are not."""
    rig = Watched()
    given = {"x": rig.tensor(X)}
    rig.launch_all((mine, given), (mine, given))
    assert rig.found() == ()
    rig = Watched()
    given = {"x": rig.tensor(X)}
    rig.launch_all((mine, given), (shifted, given))
    assert {hazard.kind for hazard in rig.found()} >= {"unordered_writes"}


def test_edges_are_handed_on() -> None:
    """PE 0 to PE 1 to PE 2 orders PE 0 before PE 2; without the middle, nothing does."""
    for middle in (True, False):
        rig = Watched(3)

        def kernel(x: Any, tl: Any, middle: bool = middle) -> None:
            hazards, pe = tl._state.hazards, tl.program_id(0)
            for _ in range(100 * pe):
                tl.zeros((1,), "f32")
            if pe and (middle or pe == 1):
                hazards.order((pe - 1, 10**6), pe)
            if pe != 1:
                tl.store(x, tl.zeros((4,), "f32"))
            hazards.publish((pe, 10**6))

        rig.launch_all((kernel, {"x": rig.tensor(X)}))
        assert len(rig.found()) == (0 if middle else 1)


def test_what_a_pe_knew_is_not_kept_for_each_of_its_stores() -> None:
    """A PE that gets an edge before each of 64 stores holds a few clocks of the machine, not 64."""
    pes, rows = 100_000, 64
    clock_bytes = 8 * pes

    def kernel(x: Any, tl: Any) -> None:
        hazards = tl._state.hazards
        for row in range(rows):
            hazards.publish((0, 10**6 + row))
            hazards.order((0, 10**6 + row), 0)
            tl.store(x + 4 * row, tl.zeros((4,), "f32"))

    rig = Watched(1, watch=pes)
    given = {"x": rig.tensor(X)}
    tracemalloc.start()
    try:
        rig.launch_all((kernel, given), wait=False)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 8 * clock_bytes


def test_without_data_the_same_hazards_are_found() -> None:
    """Nothing of the search needs values."""
    found = []
    for data in (True, False):
        rig = Watched(data=data)
        given = {"x": rig.tensor(X)}
        rig.launch_all((mine, given), (shifted, given))
        found.append([(str(h), str(h.first), str(h.second)) for h in rig.found()])
    assert found[0] == found[1] != []
