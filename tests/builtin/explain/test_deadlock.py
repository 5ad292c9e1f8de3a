"""The deadlock report: who waits, on what, since when; who never started."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import kernbench as kb
from kernbench_core.errors import DeadlockError, LimitError
from tests.builtin.working_machine import on_machine
from tests.core.toy_machine import Classes, DeafPe, StuckPe, toy_engine

PE0, PE1 = "sip0.cube0.pe0.pe_cpu", "sip0.cube0.pe1.pe_cpu"


def kernel(tl: Any) -> None:
    """Be launched."""


def spin(n: int, tl: Any) -> None:
    """Keep a PE busy."""
    x = tl.zeros((1024,), "f32")
    for _ in range(n):
        x = x + 1.0


def run(bench: Callable[[Any], None], sips: int = 2, **options: Any) -> kb.RunResult:
    """Run a host program on so many small SIPs."""
    return kb.run(bench, **on_machine(set=[f"system.sips={sips}"], **options))


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


def test_polls_of_what_never_comes_end_in_a_report() -> None:
    """The programs that poll are named with the line, however many, and a limit of simulated time stops them before."""

    def program(i: int, rt: Any) -> None:
        if i < 2:
            handle = rt.launch(listen, wait=False)
            while not handle.done:
                pass

    def listen(tl: Any) -> None:
        tl.recv((4,), "f32", (tl.program_id(0) + 1) % 4)

    def bench(rt: Any) -> None:
        rt.side_by_side(program, [0, 1, 2])

    with pytest.raises(DeadlockError) as caught:
        run(bench, 3)
    lines = str(caught.value).splitlines()
    at = program.__code__.co_firstlineno + 3
    assert lines[1] == f"  programs 0-1 at {__file__}:{at} wait for the launch of 'listen', for 1 ms"
    assert lines[2] == "  program 2 has ended"
    with pytest.raises(LimitError) as stopped:
        run(bench, 3, max_sim_ns=20_000)
    assert str(stopped.value).splitlines()[0].startswith("the run reached its limit of 20 us of simulated time after ")


def test_reports_name_programs() -> None:
    """Who waits, where and for what; also when a limit is reached."""

    def program(i: int, rt: Any) -> None:
        if i:
            rt.stall("the end of the world", "it is not near")

    with pytest.raises(DeadlockError) as caught:
        run(lambda rt: rt.side_by_side(program, [0, 1, 2]), 3)
    where = f"{__file__}:{program.__code__.co_firstlineno + 2}"
    assert str(caught.value) == (
        "deadlock at simulated time 0 ns: nothing is left to happen, but something still waits.\n"
        "  program 0 has ended\n"
        f"  programs 1-2 at {where} wait for the end of the world, for 0 ns\n"
        "    it is not near"
    )

    def endless(i: int, rt: Any) -> None:
        rt.launch(spin, 1 << 30)

    with pytest.raises(LimitError) as limited:
        run(lambda rt: rt.side_by_side(endless, [0, 1]), max_sim_ns=5000.0)
    assert any(line.endswith(" (8 PEs wait so)") or "PEs wait so" in line for line in str(limited.value).splitlines())
