"""What orders uses of memory across PEs, and what does not: messages, and slots that were given back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_core.cli import main

SLOT = '''
import numpy as np


def late(y, tl):
    if tl.program_id(0) == 0:
        for _ in range(2):
            tl.send(tl.full((64,), 1.0, "f32"), 1)
    elif tl.program_id(0) == 1:
        x = tl.recv((64,), "f32", 0, copy=False)
        tl.free(x)
        tl.store(y, x + 1.0)
        tl.recv((64,), "f32", 0)


def bench(rt):
    """Use a slot after giving it back."""
    y = rt.tensor(np.zeros(64, np.float32), name="y")
    rt.launch(late, y)
    rt.check(y, np.full(64, 2.0, np.float32))
'''


def hazards(kernel: Callable[..., Any]) -> list[tuple[str, str, str]]:
    """Run a kernel on a tensor of a row of 64 elements for each PE; give the kind and the calls of each hazard."""

    def bench(rt: Any) -> None:
        x = rt.tensor(np.zeros((rt.n_pes, 64), np.float32), name="x")
        rt.launch(kernel, x)

    return [(h.kind, h.first.call, h.second.call) for h in kb.run(bench, "tiny").hazards]


def passed(*, stores: bool, sends: bool, waits: bool = True) -> Callable[..., Any]:
    """Make a kernel: PE 0 stores a row, perhaps tells PE 1, which then loads it, or stores it too."""

    def kernel(x: Any, tl: Any) -> None:
        me, tile = tl.program_id(0), tl.full((64,), 1.0, "f32")
        if me == 0:
            tl.store(x, tile)
            if sends:
                tl.send(tile, 1)
        elif me == 1:
            if sends:
                got = tl.recv((64,), "f32", 0, wait=False)
                if waits:
                    tl.wait(got)
                else:
                    for _ in range(100):
                        tile = tile + 1.0
            else:
                tile = tile + 1.0
            if stores:
                tl.store(x, tile)
            else:
                tl.load(x, shape=(64,))

    return kernel


def test_a_message_orders_what_its_sender_had_waited_for() -> None:
    """A store, then a send; a receipt, then a load or a store: no hazard. Without the message there is one."""
    assert hazards(passed(stores=True, sends=True)) == []
    assert hazards(passed(stores=False, sends=True)) == []
    assert hazards(passed(stores=True, sends=False)) == [("unordered_writes", "tl.store", "tl.store")]
    assert hazards(passed(stores=False, sends=False)) == [("unordered_read", "tl.store", "tl.load")]


def test_a_receipt_orders_only_once_it_was_waited_for() -> None:
    """A message that has arrived by luck orders nothing."""
    assert hazards(passed(stores=True, sends=True, waits=False)) == [("unordered_writes", "tl.store", "tl.store")]


def test_order_goes_on_through_others() -> None:
    """PE 0 stores, 1 passes a message on, 2 stores: ordered. PE 3, which was told by nobody, is not."""

    def kernel(x: Any, tl: Any) -> None:
        me, tile = tl.program_id(0), tl.full((64,), 1.0, "f32")
        if me == 0:
            tl.store(x, tile)
            tl.send(tile, 1)
        elif me == 1:
            tl.send(tl.recv((64,), "f32", 0), 2)
        elif me == 2:
            tl.recv((64,), "f32", 1, copy=False)
            tl.store(x, tile)
        else:
            for _ in range(100):
                tile = tile + 1.0
            tl.store(x + 3 * 64, tile)

    assert hazards(kernel) == []


def test_what_was_taken_is_forgotten() -> None:
    """The clock that a message carries goes when it was received."""
    seen: list[int] = []

    def kernel(x: Any, tl: Any) -> None:
        me = tl.program_id(0)
        for _ in range(10):
            if me == 0:
                tl.send(tl.full((1,), 1.0, "f32"), 1)
            elif me == 1:
                tl.wait(tl.recv((1,), "f32", 0, wait=False))
        if me == 1:
            seen.append(len(tl._state.hazards._published))

    assert hazards(kernel) == []
    assert seen == [0]


def test_a_slot_used_after_it_was_given_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is told with both lines, and an error with --strict-races."""
    path = tmp_path / "late.py"
    path.write_text(SLOT)
    assert main(["run", str(path), "--topology", "tiny", "--verify-data"]) == 0
    text = capsys.readouterr().out
    told = text[text.index("  slot used") :].splitlines()[:3]
    assert told[0] == (
        "  slot used after it was given back, so that the next message may overwrite it: slot 0 of the queue from "
        "sip0.cube0.pe0 to sip0.cube0.pe1 at offset 0x0, 256 B"
    )
    assert told[1].startswith("    tl.free at late.py:11 on sip0.cube0.pe1, ")
    assert told[2].startswith("    tl.add at late.py:12 on sip0.cube0.pe1, ")
    assert main(["run", str(path), "--topology", "tiny", "--strict-races", "-q"]) == 7


def test_a_slot_given_back_under_a_read() -> None:
    """A store and a send on their way still read the slot that tl.free gives back; what is complete does not."""

    def kernel(x: Any, tl: Any) -> None:
        me = tl.program_id(0)
        if me == 0:
            tl.send(tl.full((64,), 1.0, "f32"), 1)
        elif me == 1:
            got = tl.recv((64,), "f32", 0, copy=False)
            done = tl.send(got, 2, wait=False)
            tl.wait(done)
            away = tl.send(got, 2, wait=False)
            tl.free(got)
            tl.wait(away)
        elif me == 2:
            tl.recv((64,), "f32", 1)
            tl.recv((64,), "f32", 1)

    assert hazards(kernel) == [("recycled_slot", "tl.send", "tl.free")]


def test_a_slot_is_given_back_once() -> None:
    """A second tl.free is an error that names the first."""

    def kernel(x: Any, tl: Any) -> None:
        if tl.program_id(0) == 0:
            tl.send(tl.full((64,), 1.0, "f32"), 1)
        elif tl.program_id(0) == 1:
            got = tl.recv((64,), "f32", 0, copy=False)
            tl.free(got)
            tl.free(got)

    with pytest.raises(kb.KernelError) as caught:
        hazards(kernel)
    line = kernel.__code__.co_firstlineno
    assert str(caught.value).splitlines()[0] == (
        f"tl.free at {__file__}:{line + 6} must be given a slot once, and f32 [64] of tl.recv, born at "
        f"{__file__}:{line + 4} was given back at {__file__}:{line + 5}; free it once."
    )


def test_what_a_program_received_without_waiting_comes_before_the_next_program_of_its_pe() -> None:
    """A program ends when all that it has in flight is complete, so the next one on the PE comes after the message."""

    def kernel(x: Any, tl: Any) -> None:
        tile = tl.full((64,), 1.0, "f32")
        if tl.program_id(0) == 1:
            tl.store(x, tile)
            tl.send(tile, 0)
        elif tl.program_id(0) == 0:
            tl.recv((64,), "f32", 1, wait=False)
        elif tl.program_id(0) == 4:
            tl.store(x, tile)

    def bench(rt: Any) -> None:
        rt.launch(kernel, rt.tensor(np.zeros((4, 64), np.float32), name="x"), grid=(8,))

    assert kb.run(bench, "tiny").hazards == ()
