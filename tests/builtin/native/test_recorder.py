"""A recording says of itself whether it holds for other times, and names the line that is the cause of not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernbench_builtin.machines.figures.launch import FiguresMeter
from kernbench_builtin.native.timing import hardware_of, library_file, refusals
from tests.builtin.native.native_rig import changed, machine, plugins, recorded, run_on, unlike


def causes(kernel: Any, before: Any = None, **given: Any) -> list[str]:
    """Run a kernel on two tensors of a tiny machine; give the causes, without the path of this file."""

    def bench(rt: Any) -> None:
        x, y = rt.tensor(np.zeros((64, 64), np.float16)), rt.zeros((64, 64), "f16")
        if before is not None:
            before(rt)
        rt.launch(kernel, x, y)

    _, recording = recorded(bench, **given)
    return [cause.replace(__file__, "here") for cause in recording.why_not]


def copy(x, y, tl):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * 16 * 64
    tl.store(y + at, tl.load(x + at, shape=(16, 64)))


def test_a_plain_copy_holds() -> None:
    assert causes(copy) == []


def test_a_program_that_looks_at_the_time_does_not() -> None:
    (cause,) = causes(copy, lambda rt: rt.now)
    assert cause.startswith("a program that asks for rt.now at ") and "here:" in cause


@pytest.mark.parametrize("look", ["time_ns", "over", "done", "figures", "busiest", "__repr__"])
def test_nor_one_that_looks_at_what_its_launch_took(look: str) -> None:
    """By whichever attribute of the handle: it may launch another kernel for it."""

    def bench(rt: Any) -> None:
        x, y = rt.tensor(np.zeros((64, 64), np.float16)), rt.zeros((64, 64), "f16")
        found = getattr(rt.launch(copy, x, y), look)
        rt.launch(copy, *((y, x) if (found() if callable(found) else found) == 7 else (x, y)))

    _, recording = recorded(bench, meter=FiguresMeter())
    assert recording.why_not, look


def test_nor_one_that_asks_whether_a_launch_is_over() -> None:
    def poll(rt: Any) -> None:
        handle = rt.launch(copy, rt.zeros((64, 64), "f16"), rt.zeros((64, 64), "f16"), wait=False)
        while not handle.done:
            pass

    assert any(cause.startswith("a program that asks for the state of a launch at ") for cause in causes(copy, poll))


def test_nor_one_that_takes_what_comes_first() -> None:
    def first(x, y, tl):  # type: ignore[no-untyped-def]
        me = tl.program_id(0)
        if me:
            tl.send(tl.load(x, shape=(1, 64)), 0)
        else:
            for _ in range(3):
                tl.recv_any((1, 64), "f16", [1, 2, 3])

    found = causes(first)
    assert any("which takes what comes first from several PEs at " in cause for cause in found), found


def test_nor_one_with_a_race() -> None:
    def race(x, y, tl):  # type: ignore[no-untyped-def]
        tl.store(y, tl.load(x, shape=(1, 64)))

    assert "uses of memory whose order nothing decides, which the run lists as hazards" in causes(race)


def test_another_machine_is_refused_where_the_program_looked_at_it() -> None:
    _, recording = recorded("softmax")
    other = changed(machine(), 5)
    told = refusals(recording, other, hardware_of(other, plugins()))
    assert told and all("which the program looked at" in line for line in told)
    default = machine("default")
    assert any("another structure" in line for line in refusals(recording, default, hardware_of(default, plugins())))


def test_a_model_that_the_engine_lacks_is_named() -> None:
    banks = machine("tiny", "components.hbm_ctrl.impl=builtin.hbm_ctrl_bank")
    _, recording = recorded("vector-add", banks)
    assert refusals(recording, banks, hardware_of(banks, plugins())) == [
        "the model builtin.hbm_ctrl_bank, as sip0.cube0.hbm_ctrl3 is one"
    ]


def test_nor_one_whose_programs_follow_a_direction_on_another_mesh() -> None:
    """Who is in a direction follows from where PEs are, and a sweep may change that."""

    def south(x: Any, y: Any, tl: Any) -> None:
        if tl.program_id(0) == 0:
            tl.send(tl.load(x, shape=(64,)), "s")
        elif tl.program_id(0) == 2:
            tl.store(y, tl.recv((64,), "f16", "n"))

    (why,) = causes(south)
    assert why.startswith("a program that asks for the PE in a direction at here:")


def test_nor_one_that_keeps_a_tile_beyond_its_launch() -> None:
    kept: list[Any] = []

    def keep(x: Any, tl: Any) -> None:
        kept.append(tl.load(x, shape=(64,)))

    def bench(rt: Any) -> None:
        rt.launch(keep, rt.zeros((64,), "f16"), pes=[0])
        kept.clear()

    _, recording = recorded(bench)
    assert recording.causes == ("a tile of a launch that was kept until after it",)


@pytest.mark.parametrize("look", ["ended_ns", "started_ns"])
def test_nor_one_that_looks_when_its_programs_ran(look: str) -> None:
    (why,) = causes(copy, lambda rt: getattr(rt.launch(copy, *(rt.zeros((64, 64), "f16") for _ in "xy")).launch, look))
    assert why.startswith("a program that asks for the figures of a launch at here:")


@pytest.mark.parametrize("look", ["now", "done", "time_ns"])
def test_nor_one_whose_kernel_looks_at_the_time(look: str) -> None:
    """By the runtime or the handle of another launch, which it closes over."""

    def bench(rt: Any) -> None:
        def paced(x: Any, y: Any, tl: Any) -> None:
            if (rt.now if look == "now" else getattr(handle, look)) == 7:
                tl.load(x, shape=(64,))
            copy(x, y, tl)

        x, y = rt.zeros((64, 64), "f16"), rt.zeros((64, 64), "f16")
        handle = rt.launch(copy, x, y, pes=[0], wait=look != "done")
        rt.launch(paced, x, y, pes=[1])

    _, recording = recorded(bench)
    assert recording.why_not, look


@pytest.mark.parametrize("changes", [True, False])
def test_nor_one_whose_kernel_reads_what_the_host_changes_meanwhile(changes: bool) -> None:
    """A variable of a loop around the launch; where each launch is waited for, each kernel reads its own."""

    def bench(rt: Any) -> None:
        x, y = rt.zeros((64, 64), "f16"), rt.zeros((64, 64), "f16")
        for number in range(1, 3):

            def kernel(x: Any, y: Any, tl: Any) -> None:
                for _ in range(number):  # noqa: B023
                    copy(x, y, tl)

            rt.launch(kernel, x, y, wait=not changes)
            rt.tensor((64,), "f16")
        rt.wait_all()

    _, recording = recorded(bench)
    told = "the variable 'number' of a kernel, which was changed after the launch"
    assert recording.causes == ((told,) if changes else ())


def test_a_product_that_is_stored_as_the_last_thing_holds() -> None:
    """Its tile is given back when the store is over, which nobody waits for but the end of the program."""

    def stored(x: Any, y: Any, tl: Any) -> None:
        at = tl.program_id(0) * 16 * 16
        a = tl.load(x + at, shape=(16, 16))
        tl.store(y + at, tl.dot(a, a, wait=False))

    def bench(rt: Any) -> None:
        x, y = rt.zeros((64, 64), "f16"), rt.zeros((64, 64), "f32")
        for _ in range(2):
            rt.launch(stored, x, y, grid=(9,))

    engine, recording = recorded(bench)
    assert recording.causes == ()
    if library_file() is None:
        pytest.skip("the native engine was not compiled")
    assert unlike(recording, engine) == []
    for seed in range(4):
        assert unlike(recording, run_on(changed(machine(), seed), bench)) == []
