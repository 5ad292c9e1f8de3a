"""Launches are measured by themselves: what their PEs did, and how busy everything was meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from kernbench_core.component import ComponentBase
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.errors import UsageError
from kernbench_core.host.session import GraphEngine
from kernbench_core.messages import MsgBase
from tests.core.toy_machine import Classes, ToyPe, toy_engine


class Computing(ToyPe):
    """Be a processor that computes by itself, 8 FLOP for each byte at most at 64 FLOP/ns, and is measured."""

    meter: Any = None

    def flops(self, msg: MsgBase) -> float:
        return 8.0 * msg.nbytes

    def peak_flops(self, msg: MsgBase) -> float:
        return 64.0

    def run(self, env: Environment, msg: Any) -> ProcessGenerator:
        launch, (pe,) = msg.launch, msg.targets
        launch.started_ns[pe] = env.now
        self.meter.begun(launch, pe)
        yield from launch.kernel(self, env)
        launch.ended_ns[pe] = env.now
        self.meter.ended(launch, pe)


def measured_engine(pes: int = 2) -> GraphEngine:
    """Return an engine whose processors report to its meter."""
    engine = toy_engine(pes=pes, classes=Classes(pe_cpu=Computing))
    for component in engine.hardware.components.values():
        if isinstance(component, Computing):
            component.meter = engine.meter
    return engine


def read(tl: ComponentBase, slice_: int, nbytes: int) -> None:
    """Count an answer of so many bytes of a memory, where its fabric is told to count for this processor."""
    moved = tl.fabric.counted_for.get(tl.id)
    if moved is not None:
        memory = f"sip0.cube0.hbm_ctrl{slice_}"
        moved[memory] = moved.get(memory, 0) + nbytes


def test_work_counts_for_the_launch_that_a_pe_runs() -> None:
    """Two launches in a row have their own operations and bytes; what comes between them is nobody's."""
    engine = measured_engine()
    sizes = iter((100, 100, 300, 300))  # two PEs of each launch

    def kernel(tl: ComponentBase, env: Environment) -> ProcessGenerator:
        nbytes = next(sizes)
        tl.rates.note(tl, MsgBase(nbytes), 100.0)
        read(tl, 0, 2 * nbytes)
        yield env.timeout(100.0)

    def bench(rt: Any) -> None:
        rt.launch(kernel, None)
        for tl in engine.hardware.components.values():
            if isinstance(tl, Computing):
                tl.rates.note(tl, MsgBase(7000), 1000.0)
                read(tl, 0, 7000)
        rt.launch(kernel, None)

    engine.run(bench)
    first, second = engine.figures()
    assert (first.flops, first.hbm_bytes) == (1600.0, 400)
    assert (second.flops, second.hbm_bytes) == (4800.0, 1200)
    assert first.flops_per_s == 1600.0 / first.time_ns * 1e9
    assert second.hbm_bytes_per_s == 1200 / second.time_ns * 1e9


def test_launches_side_by_side_have_their_own_work_and_share_what_is_busy() -> None:
    """Each PE's work is its launch's; the wire of the other PE is in the table of both."""
    engine = measured_engine()
    wires = {wire.name: wire for wire in engine.hardware.wires}

    def kernel(tl: ComponentBase, env: Environment) -> ProcessGenerator:
        slice_ = int(tl.id[len("sip0.cube0.pe")])
        read(tl, slice_, 64 << slice_)
        wires[f"{tl.id}->sip0.cube0.r0c0"].book(200, env.now, env.now)  # 8 B/ns: 25 ns
        yield env.timeout(50.0)

    def bench(rt: Any) -> None:
        one = rt.launch(kernel, None, pes=[0], wait=False)
        two = rt.launch(kernel, None, pes=[1], wait=False)
        rt.wait(one)
        rt.wait(two)

    engine.run(bench)
    assert [each.hbm_bytes for each in engine.figures()] == [64, 128]
    for each in engine.figures():
        (wire,) = (use for use in each.busiest if use.kind == "command wire")
        assert wire.utilisation == wire.busy_ns / each.time_ns
        assert each.time_ns == 50.0


def test_only_what_happens_between_start_and_end_is_busy() -> None:
    """Of 100 ns that are booked at the start of the kernel, its 40 ns count; so do none of those booked before it."""
    engine = measured_engine(pes=1)
    wires = {wire.name: wire for wire in engine.hardware.wires}
    up, down = "sip0.cube0.r0c0->sip0.cube0.hbm_ctrl0", "sip0.cube0.hbm_ctrl0->sip0.cube0.r0c0"

    def kernel(tl: ComponentBase, env: Environment) -> ProcessGenerator:
        wires[down].book(6400, env.now, env.now)  # 64 B/ns: 100 ns
        yield env.timeout(40.0)

    def bench(rt: Any) -> None:
        wires[up].book(640, 0.0, 0.0)
        rt.launch(kernel, None)

    engine.run(bench)
    (figures,) = engine.figures()
    (use,) = (use for use in figures.busiest if use.kind == "hbm wire")
    assert (use.name, use.utilisation, use.busy_ns, use.alike) == (down, 1.0, 40.0, 1)


def test_a_handle_has_figures_once_it_is_over() -> None:
    """Before that, asking is an error that says what to do."""
    engine = measured_engine(pes=1)
    told: list[str] = []
    handles: list[Any] = []

    def kernel(tl: ComponentBase, env: Environment) -> ProcessGenerator:
        yield env.timeout(40.0)

    def bench(rt: Any) -> None:
        handles.append(rt.launch(kernel, None, wait=False))
        with pytest.raises(UsageError) as caught:
            _ = handles[0].time_ns
        told.extend((str(caught.value), repr(handles[0])))

    engine.run(bench)
    assert told == [
        "the figures of the launch of 'kernel' must be asked for when it is over, and it is not; wait for it before, "
        "by rt.wait.",
        "<LaunchHandle of the launch of 'kernel', not over>",
    ]
    (handle,) = handles
    assert (handle.time_ns, handle.figures.pes, handle.figures.kernel) == (40.0, 1, "kernel")
    assert handle.figures == engine.figures()[0] and handle.busiest == handle.figures.busiest
    assert handle.figures.host_ns == handle.request.response.completed_ns - handle.request.born
    assert repr(handle) == "<LaunchHandle of the launch of 'kernel', <LaunchFigures kernel: 1 PE, 40 ns>>"


def test_a_processor_that_reports_nothing_gives_times_alone() -> None:
    """A model of a plug-in may run kernels by itself."""
    engine = toy_engine(pes=1)

    def kernel(tl: ComponentBase, env: Environment) -> ProcessGenerator:
        yield env.timeout(40.0)

    engine.run(lambda rt: rt.launch(kernel, None))
    (figures,) = engine.figures()
    assert (figures.time_ns, figures.busiest, figures.roofline) == (40.0, (), None)
