"""What queues refuse in a sentence: messages and slots that do not fit, and slots that cannot be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kernbench_core.errors import ConfigError, KernelError, QueueOverflowError
from tests.builtin.components.queue_kernels import LAUNCH, pass_on, run, slots


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
        f"tl.recv at {line_of(in_flight, 1)} must wait for its slot, which is not known before; leave out "
        "wait=False, or receive a copy."
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
            f"tl.recv at {line_of(kernel, 4)} must receive the 400 B of f32 (100,) that PE 0 sent at "
            f"{line_of(kernel, 2)}, not 200 B of f32 (50,); give a shape and dtype of as many bytes: a queue delivers "
            "whole messages in order, bit for bit."
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
    fits = {"2 MiB": "1 slot", "4 MiB": "4 slots", "2 GiB": "2048 slots"}[memory]  # of 2 MiB, 64 B hold a tile
    with pytest.raises(QueueOverflowError) as caught:
        run(kernel, *slots(slots=65536, slot_bytes="1 MiB", tier=tier))
    first, second, *_ = str(caught.value).splitlines()
    assert first == (
        f"the queue from sip0.cube0.pe0 to sip0.cube0.pe1, for the launch of 'kernel', called at {LAUNCH}, must find "
        f"64 GiB for its slots (65536 x 1 MiB) in the {tier} there, of which {memory} of {memory} are free "
        f"(largest hole {memory}); take at most {fits}, a smaller slot_bytes or another tier ({others}): "
        f"slots, slot_bytes and tier of pe_ipcq, as --set components.pe_ipcq.params.tier={others.split()[-1]} has it."
    )
    line = f"{kernel.__code__.co_filename}:{kernel.__code__.co_firstlineno + 4}"
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
        "511.9 KiB); take a smaller slot_bytes or another tier (sram or hbm): slots, slot_bytes and tier of pe_ipcq, "
        "as --set components.pe_ipcq.params.tier=hbm has it."
    )
    line = f"{__file__}:{kernel.__code__.co_firstlineno + 1}"
    assert held == ["    1.5 MiB  queues", f"       64 B  tl.full f32 [16], born at {line}"]
