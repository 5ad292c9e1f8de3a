"""The native engine gives what the Python engine gives, bit for bit: on the machine of the run and on others."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from kernbench_builtin.native.recording import ISSUE, ISSUE_BLOCKING, Recording
from kernbench_builtin.native.timing import Retimer, hardware_of, library_file, time_recording
from kernbench_core.errors import TcmOverflowError, UsageError
from tests.builtin.native.native_rig import SMALL, changed, machine, plugins, recorded, run_on, unlike
from tests.reference.generator import Maker
from tests.reference.harness import namespace

pytestmark = pytest.mark.skipif(library_file() is None, reason="the native engine was not compiled")


@pytest.mark.parametrize("bench", SMALL)
def test_a_run_is_timed_as_it_was(bench: str) -> None:
    engine, recording = recorded(bench)
    assert recording.causes == ()
    assert unlike(recording, engine) == []


@pytest.mark.parametrize("bench", SMALL)
def test_a_recording_is_timed_on_other_machines_as_a_run_is_there(bench: str) -> None:
    """Of times, rates and places all are others; the program is given the blocks that it chose on the first machine."""
    first, recording = recorded(bench)
    for seed in range(3):
        other = run_on(changed(machine(), 100 * len(bench) + seed), bench)
        assert len(other.op_log) == len(first.op_log)
        assert other.env.now != first.env.now
        assert unlike(recording, other) == []


def test_what_is_prepared_once_is_what_is_worked_out_each_time() -> None:
    """On machines of other times, and of another fabric between the same units, in an order that mixes them."""
    _, recording = recorded("gemm-composite")
    fabrics = [machine("tiny", f"cube.noc.bandwidth={rate} GB/s") for rate in (96, 128, 256)]
    machines = [changed(fabrics[seed % 3], seed // 2) for seed in range(12)]
    retimer = Retimer(recording, plugins())
    for other in machines:
        again, once = retimer.times(other), time_recording(recording, hardware_of(other, plugins()))
        assert again.total_ns == once.total_ns
        for name in ("commands", "requests", "launches", "wires"):
            np.testing.assert_array_equal(getattr(again, name), getattr(once, name))


def test_made_up_programs_are_timed_as_they_were_and_as_on_another_machine() -> None:
    """Loads, stores, products, queues and composites in an order that nobody chose; some do not hold, and say why."""
    held = 0
    for seed in range(8):
        bench = namespace(Maker(seed, topology="tiny").program())["bench"]
        try:
            engine, recording = recorded(bench, data=True)
        except Exception:
            continue  # what is wrong in the language is none of the engine's
        if recording.causes:
            continue
        held += 1
        assert unlike(recording, engine) == [], seed
        other = run_on(changed(machine(), seed), bench, {})
        assert unlike(recording, other) == [], seed
    assert held >= 3


def test_a_tick_of_difference_is_found_and_named() -> None:
    """A program that reads one element more before its first op has other times, told op by op."""
    engine, recording = recorded("gemm-naive")
    launch, pe, asks = recording.streams[0]
    asks, at = list(asks), 0
    while asks[at] not in (ISSUE, ISSUE_BLOCKING):
        at += 3 + asks[at + 2]
    asks[at + 1] += 1
    streams = [(launch, pe, asks), *recording.streams[1:]]
    told = unlike(attrs.evolve(recording, streams=streams), engine)
    assert any(line.startswith(f"  op 0 of PE {pe} at sip0.cube0.pe{pe}.pe_dma: ") for line in told)
    assert any(" of sip0.cube0.pe" in line for line in told)


def test_a_saved_recording_is_the_same(tmp_path) -> None:  # type: ignore[no-untyped-def]
    _, recording = recorded("softmax")
    recording.save(tmp_path / "recording.npz")
    again = Recording.load(tmp_path / "recording.npz")
    one, other = (time_recording(each, hardware_of(machine(), plugins())) for each in (recording, again))
    assert np.array_equal(one.commands, other.commands)
    assert np.array_equal(one.wires, other.wires)
    assert one.total_ns == other.total_ns > 0


def test_what_is_no_recording_is_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "recording.npz").write_bytes(b"PK")
    with pytest.raises(UsageError, match="must be a recording of this version, which"):
        Recording.load(tmp_path / "recording.npz")


def on_other_times(bench: Any, first: tuple[str, ...], then: tuple[str, ...]) -> list[str]:
    """Record a program on a machine, and say how its times on another one differ from those of a run there."""
    _, recording = recorded(bench, machine("tiny", *first))
    assert recording.causes == ()
    return unlike(recording, run_on(machine("tiny", *then), bench))


def test_what_has_no_room_in_the_scratchpad_and_goes_on_otherwise_is_refused_where_there_is_room() -> None:
    def patient(x: Any, y: Any, tl: Any) -> None:
        held = [tl.load(x, shape=(131072,), wait=False) for _ in range(3)]
        del held
        s = tl.full((64,), 1.0, "f32")
        for _ in range(20):
            s = tl.exp(s)
        try:
            tl.full((131072,), 0.0, "f32")
            more = 1
        except TcmOverflowError:
            more = 50
        for _ in range(more):
            s = tl.exp(s)
        tl.store(y, s)

    def bench(rt: Any) -> None:
        rt.launch(patient, rt.zeros((131072,), "f32"), rt.zeros((64,), "f32"), pes=[0])

    with pytest.raises(UsageError, match="what scratchpads have room for must be as in the recorded run"):
        on_other_times(bench, (), ("components.pe_math.params.overhead=5us",))


def test_slots_that_are_dropped_together_go_back_in_the_order_in_which_they_were_dropped() -> None:
    """One that a command still uses, and one that nobody does: where the command is over, the first goes first."""

    def hand_on(tl: Any) -> None:
        me = tl.program_id(0)
        if me == 0:
            tile = tl.full((1024,), 1.0, "f32")
            for _ in range(20):
                tl.send(tile, 1)
        elif me == 1:
            w = tl.full((64,), 1.0, "f32")
            for _ in range(10):
                a, b = (tl.recv((1024,), "f32", 0, copy=False) for _ in range(2))
                sent = tl.send(a, 2, wait=False)
                w = tl.exp(w)
                del sent, a, b
        else:
            for _ in range(10):
                tl.recv((1024,), "f32", 1)

    def bench(rt: Any) -> None:
        rt.launch(hand_on, pes=[0, 1, 2])

    slots = "components.pe_ipcq.params.slots=2"
    assert on_other_times(bench, (slots,), (slots, "components.pe_math.params.overhead=500ns")) == []
