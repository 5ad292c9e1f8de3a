"""Achieved against peak: counts by launch, and the roof that a launch is under."""

from __future__ import annotations

from typing import Any

import pytest

from kernbench_core.component import ComponentBase
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.explain.roofline import WorkMeter
from kernbench_core.messages import MsgBase, Transaction
from tests.core.toy_machine import Classes, ToyPe, toy_engine


class Computing(ToyPe):
    """Be a processor that computes by itself: 8 FLOP for each byte of a message, at most 64 FLOP/ns."""

    def flops(self, msg: MsgBase) -> float:
        return 8.0 * msg.nbytes

    def peak_flops(self, msg: MsgBase) -> float:
        return 64.0


def measured(nbytes: int, moved: int, pes: int = 2) -> Any:
    """Have each PE compute on `nbytes` and read `moved` bytes during a launch of 100 ns; return its point."""
    engine = toy_engine(pes=pes, classes=Classes(pe_cpu=Computing))
    meter = WorkMeter(engine.hardware)
    launches: list[Any] = []

    def kernel(tl: ComponentBase, env: Environment) -> ProcessGenerator:
        if nbytes:
            meter.served(tl, MsgBase(nbytes))
        if moved:
            meter.moved(Transaction("read", (), moved, ("sip0.cube0.hbm_ctrl0", "x", tl.id), lambda _: None))
        meter.moved(Transaction("read", (), 5000, ("sip0.cube0.r0c0", tl.id), lambda _: None))
        meter.moved(MsgBase(5000, ("sip0.cube0.hbm_ctrl0", tl.id)))
        launches.append(tl.serving[0][0].launch)  # type: ignore[attr-defined]
        yield env.timeout(100.0)

    engine.run(lambda rt: rt.launch(kernel, None))
    return meter.point(launches[0])


def test_units_and_memories_that_worked_are_compared_with_their_peaks() -> None:
    """Rates are totals over the kernel's time; peaks are of what was in use, four channels of 8 B/ns here."""
    point = measured(nbytes=400, moved=800)
    cpu, memory = point.resources
    assert (cpu.kind, cpu.resources, cpu.peak, cpu.unit) == ("pe_cpu", 2, 128.0, "GFLOP/s")
    assert (memory.kind, memory.resources, memory.peak, memory.unit) == ("hbm_ctrl", 1, 32.0, "GB/s")
    assert (point.flops, point.hbm_bytes) == (6400.0, 1600)
    assert cpu.achieved == point.achieved == 6400.0 / point.duration_ns
    assert memory.achieved == 1600 / point.duration_ns
    assert (cpu.share, memory.share) == (cpu.achieved / 128.0, memory.achieved / 32.0)


@pytest.mark.parametrize(
    ("nbytes", "moved", "attainable", "bound"),
    [
        (400, 800, 128.0, "compute"),  # 4 FLOP/B x 32 B/ns is just the peak
        (100, 800, 32.0, "memory"),
        (400, 0, 128.0, "compute"),
        (0, 800, 0.0, "memory"),
    ],
)
def test_the_roof_is_the_lower_of_peak_and_what_memory_feeds(
    nbytes: int, moved: int, attainable: float, bound: str
) -> None:
    """Attainable = min(peak, intensity x bandwidth)."""
    point = measured(nbytes, moved)
    assert (point.attainable, point.bound) == (attainable, bound)
    assert point.share == (point.achieved / attainable if attainable else 0.0)


def test_a_launch_without_work_has_no_point() -> None:
    """There is nothing to compare."""
    assert measured(0, 0) is None


def test_only_models_that_count_their_arithmetic_are_compared() -> None:
    """A model says so by defining `flops`."""
    engine = toy_engine(pes=1, classes=Classes(pe_cpu=Computing))
    meter = WorkMeter(engine.hardware)
    counted = [name for name, each in engine.hardware.components.items() if meter.counts(each)]
    assert counted == ["sip0.cube0.pe0.pe_cpu"]


def test_the_memory_nearest_to_its_peak_is_named() -> None:
    """One slice that gives three times what the others give is the busiest, with its own rate and peak."""
    engine = toy_engine(pes=2, classes=Classes(pe_cpu=Computing))
    meter = WorkMeter(engine.hardware)
    launches: list[Any] = []

    def kernel(tl: ComponentBase, env: Environment) -> ProcessGenerator:
        own = tl.id.replace("pe", "hbm_ctrl").partition(".hbm_ctrl")[0]
        for slice_, moved in (("0", 100), ("1", 300)):
            meter.moved(Transaction("read", (), moved, (f"{own}.hbm_ctrl{slice_}", "x", tl.id), lambda _: None))
        launches.append(tl.serving[0][0].launch)  # type: ignore[attr-defined]
        yield env.timeout(100.0)

    engine.run(lambda rt: rt.launch(kernel, None))
    point = meter.point(launches[0])
    assert point is not None
    (memory,) = point.resources
    assert (memory.resources, memory.peak) == (2, 64.0)
    assert (memory.busiest, memory.busiest_peak) == ("sip0.cube0.hbm_ctrl1", 32.0)
    assert memory.busiest_achieved == 600 / point.duration_ns
    assert memory.achieved == 800 / point.duration_ns
