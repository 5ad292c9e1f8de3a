"""Kernels run without time over bounded queues: blocking, slots that are lent, receiving from anyone, wait cycles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernbench_ccl.prove.untimed_run import Outcome, Untimed, bare_design, wait_cycle
from kernbench_core.errors import KernelError
from kernbench_core.kernel.commands import KernelCommand
from kernbench_core.kernel.pe_state import Kernels
from kernbench_core.kernel.pointers import Pointer
from kernbench_core.memory.device_memory import DeviceMemory
from kernbench_core.memory.hazards import Hazards
from kernbench_core.messages import Launch
from kernbench_core.peers import Peers
from kernbench_core.values.memory_store import MemoryStore

Kernel = Callable[..., None]


class Rig:
    """Some PEs of one rank each, with a vector of 8 int32 on each that holds 10 x its number and up."""

    def __init__(self, pes: int, slots: int = 1, slot_bytes: int = 16, order: int = 0) -> None:
        self._design = bare_design(pes, 1)
        self._memory = DeviceMemory(self._design)
        self._store = MemoryStore()
        self._options: dict[str, Any] = {"slots": slots, "slot_bytes": slot_bytes, "order": order}
        self._x = [self._memory.allocate((8,), "int32", f"x{pe}", [self._design.pes[pe]]) for pe in range(pes)]
        for pe, tensor in enumerate(self._x):
            self._store.write("hbm", tensor.regions, np.arange(8, dtype=np.int32) + 10 * pe)
        self.told: list[KernelCommand] = []

    def run(self, kernel: Kernel) -> Outcome:
        """Run kernel(x, pe, tl) on every PE."""
        pes = range(len(self._x))
        peers = Peers(tuple((pe,) for pe in pes))
        launch = Launch(kernel, {}, (len(self._x), 1, 1), {pe: ((pe, 0, 0),) for pe in pes}, peers)
        arguments = {pe: (Pointer(self._x[pe], 0, "int32"), pe) for pe in pes}
        kernels = Kernels(self._memory, self._store)
        return Untimed(launch, arguments, kernels, self._design, told=self.told.append, **self._options).run()

    def held(self, pe: int) -> list[int]:
        """Return what a PE's vector holds."""
        return [int(n) for n in self._store.read("hbm", self._x[pe].regions, (8,), "int32")]


def clean(outcome: Outcome) -> bool:
    """Whether all ended, and nothing is left."""
    return not outcome.blocked and not outcome.unreceived and outcome.raised is None


@pytest.mark.parametrize("order", [0, 1, 7])
@pytest.mark.parametrize("slots", [1, 3])
def test_messages_arrive_whole_and_in_order(slots: int, order: int) -> None:
    """Also those that take more slots than there are: they are streamed."""

    def kernel(x: Any, pe: int, tl: Any) -> None:
        if pe == 0:
            tl.send(tl.load(x, shape=(8,)), 1)
            tl.send(tl.load(x, shape=(2,)), 1)
        else:
            tl.store(x, tl.recv((8,), "int32", 0))
            tl.store(x + 4, tl.recv((2,), "int32", 0))

    rig = Rig(2, slots, order=order)
    assert clean(rig.run(kernel))
    assert rig.held(1) == [0, 1, 2, 3, 0, 1, 6, 7]


def test_a_send_waits_for_a_slot_and_no_longer() -> None:
    """With two slots two sends end without a receiver, the third does not."""

    def kernel(x: Any, pe: int, tl: Any) -> None:
        for _ in range(3) if pe == 0 else ():
            tl.send(tl.load(x, shape=(4,)), 1)

    outcome = Rig(2, slots=2).run(kernel)
    (wait,) = outcome.blocked[0]
    assert (wait.sends, wait.peers, wait.number) == (True, (1,), 3)
    assert len(outcome.unreceived) == 3
    assert wait_cycle(outcome.blocked) == []


def test_a_lent_slot_is_free_when_it_is_given_back() -> None:
    """A receive without a copy holds the slot until tl.free or its last name; then the sender goes on."""

    def kernel(x: Any, pe: int, tl: Any) -> None:
        if pe == 0:
            for number in range(3):
                tl.send(tl.load(x + number, shape=(1,)), 1)
            return
        first = tl.recv((1,), "int32", 0, copy=False)
        tl.store(x, first)
        tl.free(first)
        second = tl.recv((1,), "int32", 0, copy=False)
        tl.store(x + 1, second)
        del second
        tl.store(x + 2, tl.recv((1,), "int32", 0))

    rig = Rig(2)
    assert clean(rig.run(kernel))
    assert rig.held(1)[:3] == [0, 1, 2]


def test_a_slot_that_is_kept_blocks_the_sender() -> None:
    """Nobody gives it back: the sender waits for the receiver, and the receiver for the next message."""

    def kernel(x: Any, pe: int, tl: Any) -> None:
        if pe == 0:
            tl.send(tl.load(x, shape=(1,)), 1)
            tl.send(tl.load(x, shape=(1,)), 1)
        else:
            kept = tl.recv((1,), "int32", 0, copy=False)
            tl.recv((1,), "int32", 0, copy=False)
            tl.store(x, kept)

    outcome = Rig(2).run(kernel)
    cycle = wait_cycle(outcome.blocked)
    assert [(pe, wait.sends, wait.number) for pe, wait in cycle] == [(0, True, 2), (1, False, 2)]


def test_what_is_not_waited_for_ends_with_the_kernel() -> None:
    """Sends and receives in flight, waited for at the end or by their use."""

    def kernel(x: Any, pe: int, tl: Any) -> None:
        other = 1 - pe
        sent = tl.send(tl.load(x, shape=(4,)), other, wait=False)
        got = tl.recv((4,), "int32", other, wait=False)
        tl.store(x + 4, got)
        tl.wait(sent)
        tl.send(tl.load(x, shape=(1,)), other, wait=False)
        tl.recv((1,), "int32", other, wait=False)

    rig = Rig(2)
    assert clean(rig.run(kernel))
    assert rig.held(0)[4:] == [10, 11, 12, 13]
    assert rig.held(1)[4:] == [0, 1, 2, 3]


def test_a_kernel_has_not_ended_before_what_it_left_in_flight() -> None:
    """A message that nobody sends is waited for, and one of another size is an error, as at a line that waits."""

    def kernel(x: Any, pe: int, tl: Any) -> None:
        if pe == 0:
            tl.send(tl.load(x, shape=(2,)), 1)
        else:
            for size in sizes:
                tl.recv((size,), "int32", 0, wait=False)

    sizes = [2, 2]
    outcome = Rig(2).run(kernel)
    assert {pe: [(wait.peers, wait.number) for wait in waits] for pe, waits in outcome.blocked.items()} == {
        1: [((0,), 2)]
    }
    assert outcome.raised is None
    sizes = [3]
    raised = Rig(2).run(kernel).raised
    assert raised is not None and (raised.pe, type(raised.error)) == (1, KernelError)
    receive = f"tl.recv at {__file__}:{kernel.__code__.co_firstlineno + 5}"
    assert str(raised.error).startswith(f"{receive} must receive the 8 B of int32 (2,) that PE 0 sent at ")


def test_receiving_from_anyone_may_go_either_way() -> None:
    """Several orders find both outcomes, and the run says that it had a choice."""

    def kernel(x: Any, pe: int, tl: Any) -> None:
        if pe:
            tl.send(tl.load(x, shape=(1,)), 0)
            return
        for number in range(2):
            tile, source = tl.recv_any((1,), "int32", (1, 2))
            assert source in (1, 2)
            tl.store(x + number, tile)

    seen = set()
    for order in (0, 1, 2, 3, 5, 7):
        rig = Rig(3, order=order)
        outcome = rig.run(kernel)
        assert clean(outcome) and outcome.used_any
        seen.add(tuple(rig.held(0)[:2]))
    assert seen == {(10, 20), (20, 10)}


def test_the_shortest_cycle_is_found() -> None:
    """PEs 2 and 3 wait for each other; 0 and 1 wait for them."""

    def kernel(x: Any, pe: int, tl: Any) -> None:
        tl.recv((1,), "int32", {0: 1, 1: 2, 2: 3, 3: 2}[pe])

    cycle = wait_cycle(Rig(4).run(kernel).blocked)
    assert [(pe, wait.peers) for pe, wait in cycle] == [(2, (3,)), (3, (2,))]


def test_what_a_kernel_raises_ends_the_run() -> None:
    """A message of another size, as everywhere; the line is the kernel's."""

    def kernel(x: Any, pe: int, tl: Any) -> None:
        if pe == 0:
            tl.send(tl.load(x, shape=(2,)), 1)
        else:
            tl.recv((3,), "int32", 0)

    raised = Rig(2).run(kernel).raised
    assert raised is not None and raised.pe == 1
    assert isinstance(raised.error, KernelError)
    line = kernel.__code__.co_firstlineno
    assert str(raised.error) == (
        f"tl.recv at {__file__}:{line + 4} must receive the 8 B of int32 (2,) that PE 0 sent at "
        f"{__file__}:{line + 2}, not 12 B of int32 (3,); give a shape and dtype of as many bytes: a queue delivers "
        "whole messages in order, bit for bit."
    )
    assert raised.line == f"{__file__}:{line + 4}"


def test_a_slot_is_too_small_for_a_message_that_is_not_copied() -> None:
    """Only a message of one slot can be lent."""

    def kernel(x: Any, pe: int, tl: Any) -> None:
        if pe == 0:
            tl.send(tl.load(x, shape=(8,)), 1)
        else:
            tl.recv((8,), "int32", 0, copy=False)

    raised = Rig(2).run(kernel).raised
    assert raised is not None
    assert str(raised.error) == (
        f"tl.recv at {__file__}:{kernel.__code__.co_firstlineno + 4} must be given a message of one slot of 16 B when "
        "it does not copy, not of 32 B; receive a copy."
    )


def test_every_command_is_told_once() -> None:
    """A send when it is issued, everything else when it is complete."""

    def kernel(x: Any, pe: int, tl: Any) -> None:
        if pe == 0:
            tl.send(tl.load(x, shape=(1,)), 1)
        else:
            tl.store(x, tl.recv((1,), "int32", 0) + 1)

    rig = Rig(2)
    assert clean(rig.run(kernel))
    assert [command.call for command in rig.told] == ["tl.load", "tl.send", "tl.recv", "tl.add", "tl.store"]


def test_a_composite_that_nobody_waited_for_is_covered_by_no_message() -> None:
    """The rule of runs holds without time: a message carries what its sender had waited for, and no more."""

    def kernel(x: Any, waits: bool, tl: Any) -> None:
        if tl.program_id(0) == 0:
            late = tl.composite("math", tl.ref(x, (1, 8)), out=x, math_op="exp")
            if waits:
                tl.wait(late)
            tl.send(tl.zeros((1,), "f32"), 1)
        else:
            tl.wait(tl.recv((1,), "f32", 0, wait=False))
            tl.store(x, tl.zeros((8,), "f32"))

    def kinds(waits: bool) -> list[str]:
        design = bare_design(1, 2)
        memory, store = DeviceMemory(design), MemoryStore()
        hazards = Hazards(["PE 0", "PE 1"], lambda: 0.0)
        kernels = Kernels(memory, store, hazards=hazards)
        x = memory.allocate((8,), "f32", "x", design.pes)
        store.write("hbm", x.regions, np.zeros(8, np.float32))
        programs = {pe: ((pe, 0, 0),) for pe in range(2)}
        launch = Launch(kernel, {}, (2, 1, 1), programs)
        given = {pe: (Pointer(x, 0, "f32"), waits) for pe in range(2)}
        machine = Untimed(launch, given, kernels, design, slots=2, slot_bytes=64, told=lambda _: None)
        assert machine.run().raised is None
        return sorted(hazard.kind for hazard in hazards.found())

    assert kinds(waits=True) == []
    assert kinds(waits=False) == ["unordered_read", "unordered_writes"]
