"""The deadlock report: who waits, on what, since when; who never started."""

from __future__ import annotations

from typing import Any

import pytest

from kernbench_core.errors import DeadlockError
from tests.core.toy_machine import Classes, DeafPe, StuckPe, toy_engine

PE0, PE1 = "sip0.cube0.pe0.pe_cpu", "sip0.cube0.pe1.pe_cpu"


def kernel(tl: Any) -> None:
    """Be launched."""


def report(classes: Classes, pes: int = 2, params: Any = None) -> str:
    """Return the report of a run that cannot end."""
    with pytest.raises(DeadlockError) as caught:
        toy_engine(pes, params, classes).run(lambda rt: rt.launch(kernel))
    assert caught.value.exit_code == 4
    return str(caught.value)


LAUNCH = f"{__file__}:{report.__code__.co_firstlineno + 3}"
"""The line that launches the kernel."""


def test_report_of_kernels_that_wait_for_each_other() -> None:
    """Two PEs that wait for each other: host, kernels with line and age, occupancy, the cycle."""
    params = {PE0: {"waits_for": PE1}, PE1: {"waits_for": PE0}}
    # both launches reach their PE over the router's wires; each carries 64 B over 8 B/ns to it
    assert report(Classes(pe_cpu=StuckPe), params=params) == (
        "deadlock at simulated time 70 ns: nothing is left to happen, but something still waits.\n"
        "  host waits for KernelLaunchMsg since 0 ns\n"
        "  kernels that wait:\n"
        f"    {PE0} waits at kernel.py:12 for a message, for 5 ns (2 PEs wait so)\n"
        "  components that are busy or hold messages:\n"
        f"    {PE0} (pe_cpu): serves 1, the oldest for 5 ns; 0 wait in its queue; 1 of its messages are unanswered\n"
        f"    {PE1} (pe_cpu): serves 1, the oldest for 0 ns; 0 wait in its queue; 1 of its messages are unanswered\n"
        f"  wait-for cycle: {PE0} -> {PE1} -> {PE0}"
    )


def test_report_names_pes_that_never_started() -> None:
    """A launch that a PE swallowed is told apart from kernels that wait."""
    assert report(Classes(pe_cpu=DeafPe), pes=2) == (
        "deadlock at simulated time 70 ns: nothing is left to happen, but something still waits.\n"
        "  host waits for KernelLaunchMsg since 0 ns\n"
        "  PEs that were launched but never started:\n"
        f"    the launch of 'kernel', called at {LAUNCH}: sip0.cube0.pe0-1\n"
        "  wait-for cycle: none; an answer was lost"
    )


def test_long_lists_are_cut() -> None:
    """A report of many components stays readable and says how many were left out."""
    params = {f"sip0.cube0.pe{i}.pe_cpu": {"waits_for": f"sip0.cube0.pe{(i + 1) % 25}.pe_cpu"} for i in range(25)}
    lines = report(Classes(pe_cpu=StuckPe), 25, params).splitlines()
    start = lines.index("  components that are busy or hold messages:")
    assert lines[start + 20].startswith("    sip0.cube0.pe")
    assert lines[start + 21] == "    and 5 more"
