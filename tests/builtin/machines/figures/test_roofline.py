"""Achieved against peak: the roof that a launch is under, and what comes nearest to it."""

from __future__ import annotations

from typing import Any

import pytest

from kernbench_builtin.machines.figures.roofline import roofline_point
from kernbench_core.reporting import LaunchWork, UnitWork
from tests.core.toy_machine import toy_engine

CPU, MEMORY = "sip0.cube0.pe{}.pe_cpu", "sip0.cube0.hbm_ctrl{}"


def point(flops: float, moved: dict[int, int], pes: int = 2, duration: float = 100.0) -> Any:
    """Return the point of `flops` on each of some PEs of 64 FLOP/ns, and of bytes of memories of 4 x 8 B/ns."""
    work = LaunchWork(memories={MEMORY.format(slice_): nbytes for slice_, nbytes in moved.items()})
    for pe in range(pes):
        unit = work.units[CPU.format(pe)] = UnitWork()
        unit.flops, unit.peak = flops, 64.0 if flops else 0.0
    return roofline_point(work, duration, toy_engine(pes=2).hardware)


def test_units_and_memories_that_worked_are_compared_with_their_peaks() -> None:
    """Rates are totals over the kernel's time; peaks are of what was in use, four channels of 8 B/ns here."""
    found = point(flops=3200.0, moved={0: 1600})
    cpu, memory = found.resources
    assert (cpu.kind, cpu.resources, cpu.peak, cpu.unit) == ("pe_cpu", 2, 128.0, "GFLOP/s")
    assert (memory.kind, memory.resources, memory.peak, memory.unit) == ("hbm_ctrl", 1, 32.0, "GB/s")
    assert (found.flops, found.hbm_bytes) == (6400.0, 1600)
    assert (cpu.achieved, found.achieved, memory.achieved) == (64.0, 64.0, 16.0)
    assert (cpu.share, memory.share) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("flops", "moved", "attainable", "bound"),
    [
        (3200, {0: 1600}, 128.0, "compute"),  # 4 FLOP/B x 32 B/ns is just the peak
        (800, {0: 1600}, 32.0, "memory"),
        (3200, {}, 128.0, "compute"),
        (0, {0: 1600}, 0.0, "memory"),
    ],
)
def test_the_roof_is_the_lower_of_peak_and_what_memory_feeds(
    flops: int, moved: dict[int, int], attainable: float, bound: str
) -> None:
    """Attainable = min(peak, intensity x bandwidth)."""
    found = point(flops, moved)
    assert (found.attainable, found.bound) == (attainable, bound)
    assert found.share == (found.achieved / attainable if attainable else 0.0)


def test_without_work_or_time_there_is_no_point() -> None:
    """There is nothing to compare."""
    assert point(0, {}) is None
    assert point(100, {0: 5}, duration=0.0) is None


def test_what_is_no_hbm_is_no_memory_traffic() -> None:
    """Bytes that went to a router, as a model of a scratchpad may have it, are none of HBM."""
    work = LaunchWork(memories={"sip0.cube0.r0c0": 5000, MEMORY.format(0): 64})
    found = roofline_point(work, 10.0, toy_engine(pes=1).hardware)
    assert found is not None and found.hbm_bytes == 64


def test_the_memory_nearest_to_its_peak_is_named() -> None:
    """One slice that gives three times what the others give is the busiest, with its own rate and peak."""
    (memory,) = point(0, {0: 200, 1: 600}).resources
    assert (memory.resources, memory.peak) == (2, 64.0)
    assert (memory.busiest, memory.busiest_peak) == ("sip0.cube0.hbm_ctrl1", 32.0)
    assert (memory.busiest_achieved, memory.achieved) == (6.0, 8.0)


def test_json_has_no_endless_number() -> None:
    """Without traffic the intensity has no end, which JSON cannot say."""
    found = point(3200, {}).to_json()
    assert found["intensity"] is None
    assert [(each["kind"], each["share"]) for each in found["resources"]] == [("pe_cpu", 0.5)]
