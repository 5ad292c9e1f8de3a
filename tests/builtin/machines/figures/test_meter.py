"""Launches are measured by themselves: what their PEs did, and how busy everything was meanwhile."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from kernbench_builtin.machines.figures import readings
from kernbench_builtin.machines.figures.launch import FiguresMeter
from kernbench_builtin.machines.figures.resource_locations import ResourceLocations
from kernbench_builtin.machines.figures.tables import launches_of
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
    engine = toy_engine(pes=pes, classes=Classes(pe_cpu=Computing), meter=FiguresMeter())
    for component in engine.hardware.components.values():
        if isinstance(component, Computing):
            component.meter = engine.meter
    return engine


def read(tl: ComponentBase, slice_: int, nbytes: int) -> None:
    """Count an answer of so many bytes of a memory, where its fabric is told to count for this processor."""
    counter = tl.fabric.counters.get(tl.id)
    if counter is not None and counter.work is not None:
        memory, moved = f"sip0.cube0.hbm_ctrl{slice_}", counter.work.memories
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
    first, second = launches_of(engine)
    assert (first.flops, first.hbm_bytes) == (1600.0, 400)
    assert (second.flops, second.hbm_bytes) == (4800.0, 1200)
    assert first.flops_per_s == 1600.0 / first.time_ns * 1e9
    assert second.hbm_bytes_per_s == 1200 / second.time_ns * 1e9


def test_launches_side_by_side_have_their_own_work_and_wires_and_share_memories() -> None:
    """Each PE's work is its launch's, and so is its wire; a memory of their SIP is in the table of both."""
    engine = measured_engine()
    wires = {wire.name: wire for wire in engine.hardware.wires}
    memory = "sip0.cube0.hbm_ctrl0->sip0.cube0.r0c0"

    def kernel(tl: ComponentBase, env: Environment) -> ProcessGenerator:
        slice_ = int(tl.id[len("sip0.cube0.pe")])
        read(tl, slice_, 64 << slice_)
        wires[f"{tl.id}->sip0.cube0.r0c0"].book(200, env.now, env.now)  # 8 B/ns: 25 ns
        yield env.timeout(25.0)  # both run now
        wires[memory].book(64, env.now, env.now)
        yield env.timeout(25.0)

    def bench(rt: Any) -> None:
        one = rt.launch(kernel, None, pes=[0], wait=False)
        two = rt.launch(kernel, None, pes=[1], wait=False)
        rt.wait(one)
        rt.wait(two)

    engine.run(bench)
    assert [each.hbm_bytes for each in launches_of(engine)] == [64, 128]
    for pe, each in enumerate(launches_of(engine)):
        (wire,) = (use for use in each.busiest if use.kind == "command wire")
        assert wire.utilisation == wire.busy_ns / each.time_ns
        assert each.time_ns == 50.0
        own = f"sip0.cube0.pe{pe}.pe_cpu->sip0.cube0.r0c0"
        assert (wire.name, wire.alike) == (own, 1)
        used = {row["name"]: row["bytes"] for row in each.links}
        assert used[own] == 200 and used[memory] == 128
        assert f"sip0.cube0.pe{1 - pe}.pe_cpu->sip0.cube0.r0c0" not in used


def test_what_no_sip_has_is_of_every_launch() -> None:
    """A switch, two wires of it, a PE's unit on each SIP: those of PE 1 on SIP 1, by hand."""
    sips, pes = np.array([[-1, -1], [-1, 0], [1, -1], [0, 0], [1, 1]]).T, np.array([-1, -1, -1, 0, 1])
    found = ResourceLocations(*sips, pes, (0, 1)).of_launch([1])
    assert found.tolist() == [True, False, True, False, True]


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
    (figures,) = launches_of(engine)
    (use,) = (use for use in figures.busiest if use.kind == "hbm wire")
    assert (use.name, use.utilisation, use.busy_ns, use.alike, use.nbytes) == (down, 1.0, 40.0, 1, 2560)
    links = {row.pop("name"): row for row in figures.links}
    assert links[down] == {"kind": "hbm wire", "bytes": 2560, "busy_ns": 40.0, "utilisation": 1.0}
    assert up not in links


def test_what_is_booked_for_later_is_busy_and_counts_then() -> None:
    """Three launches in a row: a message of the first one is still on the wire in the second, which sends none."""
    engine = measured_engine(pes=1)
    wires = {wire.name: wire for wire in engine.hardware.wires}
    wire = wires["sip0.cube0.hbm_ctrl0->sip0.cube0.r0c0"]
    sizes = iter((64 * 180, 0, 640))  # 64 B/ns: 180 ns, 10 ns

    def kernel(tl: ComponentBase, env: Environment) -> ProcessGenerator:
        nbytes = next(sizes)
        if nbytes:
            wire.book(nbytes, env.now, env.now)
        yield env.timeout(40.0)

    def bench(rt: Any) -> None:
        for _ in range(3):
            rt.launch(kernel, None)

    engine.run(bench)
    one, two, three = launches_of(engine)
    found = [next(row for row in each.links if row["name"] == wire.name) for each in (one, two, three)]
    assert two.started_ns < one.started_ns + 180.0 < two.ended_ns
    busy = [40.0, one.started_ns + 180.0 - two.started_ns, 10.0]
    assert [row["busy_ns"] for row in found] == busy
    assert [row["bytes"] for row in found] == [64 * each for each in busy]


@pytest.mark.parametrize("most", [1, 1 << 17])
def test_it_does_not_matter_when_readings_are_worked_out(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """After each of them, or all at the end: launches that overlap and follow each other have what they had."""
    monkeypatch.setattr(readings, "_MOST", most)
    engine = measured_engine(pes=2)
    wires = [wire for wire in engine.hardware.wires if "hbm_ctrl" in wire.name and "->" in wire.name]
    passed: list[tuple[float, float, int]] = []
    free, draw = [0.0] * len(wires), Random(7)

    def kernel(tl: ComponentBase, env: Environment) -> ProcessGenerator:
        for _ in range(3):
            at, nbytes = draw.randrange(len(wires)), 64 * draw.randrange(1, 9)
            wires[at].book(nbytes, env.now, env.now)
            start = max(free[at], env.now)
            free[at] = start + nbytes / 64  # B/ns
            passed.append((start, free[at], at))
            yield env.timeout(float(draw.randrange(1, 60)))

    def bench(rt: Any) -> None:
        for _ in range(6):
            handles = [rt.launch(kernel, None, pes=[pe], wait=False) for pe in (0, 1)]
            for handle in handles:
                rt.wait(handle)

    engine.run(bench)
    for launch in launches_of(engine):
        wanted: dict[str, float] = {}
        for start, end, at in passed:
            within = min(end, launch.ended_ns) - max(start, launch.started_ns)
            if within > 0.0:
                wanted[wires[at].name] = wanted.get(wires[at].name, 0.0) + within * 64
        links = {row["name"]: row["bytes"] for row in launch.links if row["bytes"] and row["kind"] == "hbm wire"}
        assert links == wanted


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
        "the figures of the launch of 'kernel' must be read after it has ended; call rt.wait first.",
        "<LaunchHandle of the launch of 'kernel', not over>",
    ]
    (handle,) = handles
    assert (handle.time_ns, handle.figures.pes, handle.figures.kernel) == (40.0, 1, "kernel")
    assert handle.figures == next(iter(launches_of(engine))) and handle.busiest == handle.figures.busiest
    assert handle.figures.host_ns == handle.request.response.completed_ns - handle.request.born
    assert repr(handle) == "<LaunchHandle of the launch of 'kernel', <LaunchFigures kernel: 1 PE, 40 ns>>"


def test_a_processor_that_reports_nothing_gives_times_alone() -> None:
    """A model of a plug-in may run kernels by itself."""
    engine = toy_engine(pes=1, meter=FiguresMeter())

    def kernel(tl: ComponentBase, env: Environment) -> ProcessGenerator:
        yield env.timeout(40.0)

    engine.run(lambda rt: rt.launch(kernel, None))
    (figures,) = launches_of(engine)
    assert (figures.time_ns, figures.busiest, figures.roofline) == (40.0, (), None)
