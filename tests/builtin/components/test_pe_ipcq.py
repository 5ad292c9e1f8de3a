"""Queues between PEs on the builtin machine: data and order against plain deques, memories, streams, fairness."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernbench_core as kb
from kernbench_core.errors import ConfigError, KernelError, QueueOverflowError
from kernbench_core.host.session import GraphEngine
from kernbench_core.plugins import load_plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology.compilation import compile_topology
from tests.conftest import examples

Array = np.ndarray[Any, Any]


def slots(**params: object) -> list[str]:
    """Spell parameters of every pe_ipcq as --set does."""
    return [f"components.pe_ipcq.params.{name}={value}" for name, value in params.items()]


def run(kernel: Callable[..., Any], *given: str, topology: str = "tiny", **options: Any) -> kb.RunResult:
    """Run a kernel without arguments on every PE."""
    return kb.run(lambda rt: rt.launch(kernel), topology, set=given, **options)


def simulate(kernel: Callable[..., Any], *given: str, topology: str = "tiny") -> GraphEngine:
    """Run a kernel without arguments on every PE and give the engine, with its wires and components."""
    plugins = load_plugins()
    graph = compile_topology(configure(plugins, topology, None, given), plugins.components)
    engine = GraphEngine(graph, plugins.components)
    engine.run(lambda rt: rt.launch(kernel))
    return engine


LAUNCH = f"{__file__}:{run.__code__.co_firstlineno + 2}"
"""The line that launches the kernel of `run`."""


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


@examples(25)
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


def pass_on(count: int) -> Callable[..., Any]:
    """Make a kernel in which PE 0 sends `count` elements to PE 1."""

    def kernel(tl: Any) -> None:
        if tl.program_id(0) == 0:
            tl.send(tl.full((count,), 1.0, "f32"), 1)
        elif tl.program_id(0) == 1:
            tl.recv((count,), "f32", 0)

    return kernel


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


# What is wrong -------------------------------------------------------------------------------------------


def told(kernel: Callable[..., Any], *given: str, kind: type[Exception] = KernelError) -> str:
    """Give the first line of the error that a kernel ends with, its file without folders."""
    with pytest.raises(kind) as caught:
        run(kernel, *given)
    return str(caught.value).splitlines()[0].replace(__file__, "test.py").replace(f"{__file__.rpartition('/')[0]}/", "")


def line_of(kernel: Callable[..., Any], after: int) -> str:
    """Spell a line of a kernel, `after` lines below its def."""
    return f"test.py:{kernel.__code__.co_firstlineno + after}"


def test_what_cannot_be_sent_or_received_is_told() -> None:
    """Each wrong call ends with one whole sentence that names the line and what to do."""

    def unknown(tl: Any) -> None:
        tl.send(tl.full((1,), 1.0, "f32"), 4)

    def itself(tl: Any) -> None:
        tl.recv((1,), "f32", 1)

    def number(tl: Any) -> None:
        tl.send(3.5, 1)

    def in_flight(tl: Any) -> None:
        tl.recv((1,), "f32", (tl.program_id(0) + 1) % 4, copy=False, wait=False)

    def nobody(tl: Any) -> None:
        tl.recv_any((1,), "f32", [])

    def sideways(tl: Any) -> None:
        tl.send(tl.full((1,), 1.0, "f32"), "up")

    def outwards(tl: Any) -> None:
        tl.send(tl.full((1,), 1.0, "f32"), "w")

    assert told(unknown) == f"tl.send at {line_of(unknown, 1)}: a peer must be a rank from 0 to 3, not 4."
    assert told(itself) == f"tl.recv at {line_of(itself, 1)} must name another PE, not 1, which is this one."
    assert told(number) == (
        f"tl.send at {line_of(number, 1)} must be given a tile, not float 3.5; make a tile of it with tl.full."
    )
    assert told(in_flight) == (
        f"tl.recv at {line_of(in_flight, 1)} must wait for a slot: only then is it known which one it is; leave "
        "wait=False out, or receive a copy."
    )
    assert told(nobody) == f"tl.recv_any at {line_of(nobody, 1)} must be given at least one source, not none."
    assert told(sideways) == (
        f"tl.send at {line_of(sideways, 1)}: a peer must be a direction, one of n, e, s, w, not 'up'."
    )
    assert told(outwards) == (
        f"tl.send at {line_of(outwards, 1)}: a peer must be in a direction in which this PE has a neighbour, not 'w'; "
        "name it by its number."
    )


def test_sizes_that_differ_are_told_with_both_lines() -> None:
    """The receipt is the one at fault, whether it is copied, in pieces, or not."""

    def kernel(tl: Any) -> None:
        if tl.program_id(0) == 0:
            tl.send(tl.full((100,), 1.0, "f32"), 1)
        elif tl.program_id(0) == 1:
            tl.recv((50,), "f32", 0)

    for params in ([], slots(slots=1, slot_bytes="64 B")):
        assert told(kernel, *params) == (
            f"tl.recv at {line_of(kernel, 4)} must receive as many bytes as PE 0 sent at "
            f"{line_of(kernel, 2)}, 400 B of f32 (100,), not 200 B of f32 (50,); give a shape and dtype of that many "
            "bytes: messages of a queue are received whole and in order, and their bits are taken as they are."
        )


def test_a_slot_of_the_kernel_must_hold_the_message_in_the_scratchpad() -> None:
    """A zero-copy receipt of more than a slot, or from slots elsewhere, is refused before anything comes."""

    def kernel(tl: Any) -> None:
        if tl.program_id(0) == 1:
            tl.recv((100,), "f32", 0, copy=False)

    start = (
        f"tl.recv at {line_of(kernel, 2)} with copy=False must receive a message that fits one slot of the scratchpad, "
        "not 400 B where slots have"
    )
    end = "; receive a copy, or"
    larger, there = "give the queue larger slots.", "put the slots there, with tier tcm."
    assert told(kernel, *slots(slot_bytes="64 B")) == f"{start} 64 B of tcm{end} {larger}"
    assert told(kernel, *slots(tier="hbm")) == f"{start} 16 KiB of hbm{end} {there}"


def test_slots_that_cannot_be_are_told() -> None:
    """By the component's parameters; what a launch's channel asks for is checked when it is made."""
    with pytest.raises(ConfigError) as caught:
        run(pass_on(1), *slots(slot_bytes="100 B"))
    assert str(caught.value) == (
        "sip0.cube0.pe0.pe_ipcq: slot_bytes must be a multiple of 64, a line of the scratchpad, not 100."
    )


@pytest.mark.parametrize(
    ("tier", "memory", "others"),
    [("tcm", "2 MiB", "sram or hbm"), ("sram", "4 MiB", "tcm or hbm"), ("hbm", "2 GiB", "tcm or sram")],
)
def test_slots_that_do_not_fit_name_their_queue(tier: str, memory: str, others: str) -> None:
    """First of all: between whom, in which launch, how many and how large, where, and what to do about it."""
    kernel = pass_on(1)
    with pytest.raises(QueueOverflowError) as caught:
        run(kernel, *slots(slots=65536, slot_bytes="1 MiB", tier=tier))
    first, second, *_ = str(caught.value).splitlines()
    assert first == (
        f"the queue from sip0.cube0.pe0 to sip0.cube0.pe1, for the launch of 'kernel', called at {LAUNCH}, must find "
        f"64 GiB for its slots (65536 x 1 MiB) in the {tier} there, of which {memory} of {memory} are free "
        f"(largest hole {memory}); take fewer slots, a smaller slot_bytes or another tier ({others}): slots, "
        "slot_bytes and tier of pe_ipcq, as --set components.pe_ipcq.params.slots=2 has it."
    )
    line = f"{__file__}:{kernel.__code__.co_firstlineno + 4}"
    assert second.startswith(f"  It is first used by tl.recv at {line}, at ")


def test_a_run_ends_with_the_first_slots_that_do_not_fit() -> None:
    """Nobody can do without them: no kernel goes on, and no other queue is asked for."""
    failed: list[int] = []

    def kernel(tl: Any) -> None:
        tile = tl.full((16,), 1.0, "f32")
        for other in range(1, 4):
            try:
                tl.send(tile, (tl.program_id(0) + other) % 4)
            except KernelError:
                failed.append(other)

    with pytest.raises(QueueOverflowError) as caught:
        run(kernel, *slots(slots=3, slot_bytes="512 KiB"))
    assert failed == []
    first, _, *held = str(caught.value).splitlines()
    assert first == (
        f"the queue from sip0.cube0.pe0 to sip0.cube0.pe2, for the launch of 'kernel', called at {LAUNCH}, must find "
        "1.5 MiB for its slots (3 x 512 KiB) in the tcm there, of which 511.9 KiB of 2 MiB are free (largest hole "
        "511.9 KiB); take fewer slots, a smaller slot_bytes or another tier (sram or hbm): slots, slot_bytes and tier "
        "of pe_ipcq, as --set components.pe_ipcq.params.slots=2 has it."
    )
    line = f"{__file__}:{kernel.__code__.co_firstlineno + 1}"
    assert held == ["    1.5 MiB  queues", f"       64 B  tl.full f32 [16], born at {line}"]
