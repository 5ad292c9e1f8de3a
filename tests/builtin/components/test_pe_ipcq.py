"""Queues between PEs on the builtin machine: data and order against plain deques, memories, streams, fairness."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernbench_core as kb
from kernbench_core.host.session import GraphEngine
from kernbench_core.plugins import load_plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology.compilation import compile_topology
from tests.builtin.components.queue_kernels import pass_on, run, slots

Array = np.ndarray[Any, Any]


def simulate(kernel: Callable[..., Any], *given: str, topology: str = "tiny") -> GraphEngine:
    """Run a kernel without arguments on every PE and give the engine, with its wires and components."""
    plugins = load_plugins()
    graph = compile_topology(configure(plugins, topology, None, given), plugins)
    engine = GraphEngine(graph, plugins.components)
    engine.run(lambda rt: rt.launch(kernel))
    return engine


# Against a naive reference -------------------------------------------------------------------------------


class Message:
    """One message of a random program: from whom to whom, how long, and how both ends go about it."""

    def __init__(self, ends: tuple[int, int], count: int, adds: bool, lent: bool, wait: bool, row: int) -> None:
        self.source, self.destination = ends
        self.count = count
        self.adds = adds
        self.lent = lent
        self.wait = wait
        self.row = row


messages = st.lists(
    st.tuples(
        st.permutations(range(4)).map(lambda order: (order[0], order[1])),
        st.sampled_from([1, 3, 16, 17, 31, 40, 100]),
        st.booleans(),
        st.booleans(),
        st.booleans(),
    ),
    max_size=14,
)


def reference(program: Sequence[Message]) -> Array:
    """Give the row that each message leaves at its receiver, by deques; what a PE adds up goes on with the next."""
    queues: dict[tuple[int, int], deque[Array]] = {}
    sums = {pe: np.float32(pe) for pe in range(4)}
    out = np.zeros((len(program), 100), np.float32)
    for message in program:
        sent = np.arange(message.count, dtype=np.float32) + 7 * message.row
        if message.adds:
            sent = sent + sums[message.source]
        queues.setdefault((message.source, message.destination), deque()).append(sent)
        got = queues[message.source, message.destination].popleft()
        out[message.row, : message.count] = got
        sums[message.destination] = got.max()
    return out


def simulated(program: Sequence[Message], depth: int, slot_bytes: int, tier: str) -> kb.RunResult:
    """Run the same program: each PE does its part of it in order, so that no two PEs can wait for each other."""

    def kernel(out: Any, tl: Any) -> None:
        me, handles = tl.program_id(0), []
        total = tl.full((1,), me, "f32")
        lent: dict[int, list[Any]] = {}
        shuffle = random.Random(me)
        for message in program:
            if message.source == me:
                tile = tl.arange(0, message.count).to("f32") + 7 * message.row
                tile = tile + total if message.adds else tile + 0.0 * total
                handles.append(tl.send(tile, message.destination, wait=message.wait))
            if message.destination != me:
                continue
            lends = message.lent and tier == "tcm" and 4 * message.count <= slot_bytes and depth > 1
            held = lent.setdefault(message.source, [])
            if not lends or len(held) == depth - 1:
                shuffle.shuffle(held)
                while held:
                    tl.free(held.pop())
            if lends:
                got = tl.recv((message.count,), "f32", message.source, copy=False)
                held.append(got)
            else:
                got = tl.recv((message.count,), "f32", message.source, wait=message.wait)
            tl.store(out + message.row * 100, got)
            total = tl.max(got, axis=0, keep_dims=True)
        tl.wait(*handles)

    def bench(rt: Any) -> None:
        out = rt.tensor(np.zeros((max(1, len(program)), 100), np.float32), name="out")
        rt.launch(kernel, out)
        rt.check(out, reference(program) if program else np.zeros((1, 100), np.float32), 0.0, 0.0)

    return kb.run(bench, "tiny", set=slots(slots=depth, slot_bytes=f"{slot_bytes} B", tier=tier), verify_data=True)


@settings(max_examples=25)
@given(messages, st.integers(1, 4), st.sampled_from([64, 128, 192]), st.sampled_from(["tcm", "sram", "hbm"]))
def test_random_programs_give_what_deques_give(
    drawn: list[tuple[Any, ...]], depth: int, slot_bytes: int, tier: str
) -> None:
    """Data and order are right with any slots anywhere, nothing is lost, no use of a slot is late, twice the same."""
    program = [Message(*message, row) for row, message in enumerate(drawn)]
    result = simulated(program, depth, slot_bytes, tier)
    assert result.verified
    assert result.hazards == ()
    assert result.op_log_sha256 == simulated(program, depth, slot_bytes, tier).op_log_sha256
    names = [record.op_name for record in result.op_log]
    assert names.count("ipcq_send") == names.count("ipcq_recv") == len(program)
    pieces = sum(max(1, -(-4 * message.count // slot_bytes)) for message in program)
    assert names.count("ipcq_copy") == pieces


# Slots ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tier", "memory"), [("sram", "sram"), ("hbm", "hbm_ctrl1")])
def test_slots_elsewhere_charge_the_hop_to_their_bank(tier: str, memory: str) -> None:
    """A message goes to the receiver's own SRAM or HBM slice and is read back from there: its wires carry it twice."""
    near, away = simulate(pass_on(1024)), simulate(pass_on(1024), *slots(tier=tier))
    node = f"sip0.cube0.{memory}"
    assert near.hardware.components[node].served == 0
    assert away.hardware.components[node].served == 2
    assert sum(wire.bytes_carried for wire in away.hardware.components[node].internal_wires) == 2 * 4096
    (copy,) = [record for record in away.op_log if record.op_name == "ipcq_copy"]
    assert copy.params["dst_space"] == tier
    assert copy.writes is not None
    assert copy.writes.space == tier
    assert away.env.now > near.env.now + 2 * 4096 / 128


def test_recv_any_is_fair() -> None:
    """Of several that always have a message waiting, each is served once before any is served again."""
    turns: list[int] = []

    def kernel(tl: Any) -> None:
        me = tl.program_id(0)
        tile = tl.full((1,), 1.0, "f32")
        if me == 0:
            for _ in range(100):  # all others have sent by then
                tile = tile + 1.0
            for _ in range(9):
                _, source = tl.recv_any((1,), "f32", [1, 2, 3])
                turns.append(source)
        else:
            for _ in range(3):
                tl.send(tile, 0)

    run(kernel)
    assert sorted(turns) == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert all(len(set(turns[at : at + 3])) == 3 for at in (0, 3, 6))


def test_recv_any_waits_for_whoever_comes_first() -> None:
    """With nothing there it takes the first message that arrives, and names its sender as it was named."""
    got: list[Any] = []

    def kernel(tl: Any) -> None:
        me = tl.program_id(0)
        if me == 0:
            for _ in range(2):
                tile, source = tl.recv_any((2,), "f32")
                got.append((source, tile.shape))
        elif me in (1, 3):
            for _ in range(5 * me):
                tl.full((64,), 1.0, "f32") + 1.0
            tl.send(tl.full((2,), 1.0, "f32"), 0)

    run(kernel)
    assert got == [(1, (2,)), (3, (2,))]


def test_a_sender_waits_for_a_free_slot() -> None:
    """With four slots the fifth message leaves when the first slot is given back, and not before."""
    def kernel(tl: Any) -> None:
        me = tl.program_id(0)
        if me == 0:
            tile = tl.full((16,), 1.0, "f32")
            for _ in range(5):
                tl.send(tile, 1)
            tl.send(tile, 2)
        elif me == 1:
            tl.recv((16,), "f32", 3)
            for _ in range(5):
                tl.recv((16,), "f32", 0)
        elif me == 3:
            tile = tl.full((16,), 1.0, "f32")
            for _ in range(100):
                tile = tile + 1.0
            tl.send(tile, 1)
        else:
            tl.recv((16,), "f32", 0)

    result = run(kernel)
    sends = [r for r in result.op_log if r.op_name == "ipcq_send" and r.component_id == "sip0.cube0.pe0.pe_ipcq"]
    (late,) = [r for r in result.op_log if r.op_name == "ipcq_send" and r.component_id == "sip0.cube0.pe3.pe_ipcq"]
    sent = [record.t_start for record in sends]
    assert sent[3] < late.t_start < sent[4]


def test_a_slot_goes_back_with_its_last_name() -> None:
    """A zero-copy receipt in a loop needs no tl.free: the name that is taken again gives the slot back."""

    def kernel(tl: Any) -> None:
        if tl.program_id(0) == 0:
            for _ in range(12):
                tl.send(tl.full((16,), 1.0, "f32"), 1)
        elif tl.program_id(0) == 1:
            for _ in range(12):
                tile = tl.recv((16,), "f32", 0, copy=False)
                tile = tile + 1.0

    assert run(kernel).hazards == ()


def test_zero_copy_takes_no_time_of_the_dma() -> None:
    """The receipt of a message that has arrived takes the pe_ipcq's own time only, and touches no byte."""

    def kernel(tl: Any) -> None:
        if tl.program_id(0) == 0:
            tl.send(tl.full((4096,), 1.0, "f32"), 1)
        elif tl.program_id(0) == 1:
            tile = tl.full((64,), 1.0, "f32")
            for _ in range(50):
                tile = tile + 1.0
            tl.recv((4096,), "f32", 0, copy=False)

    (record,) = [r for r in run(kernel).op_log if r.op_name == "ipcq_recv"]
    assert record.t_end - record.t_start == 4.0
    assert record.params["copied"] is False
    assert record.writes is None
    # the slot goes back as soon as the kernel has dropped it, also where that takes no time
    run(kernel, *slots(overhead="0 ns"))
