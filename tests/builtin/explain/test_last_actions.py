"""What PEs and host programs did last, in the words of the deadlock report."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kernbench_builtin.explain.last_actions import before_that, ended_program, idle_pes, pe_names
from kernbench_core.kernel.steps import PathStep

HERE = (test_site := (lambda: None).__code__, 0)
LINE = f"{__file__}:{test_site.co_firstlineno}"


def machine(**last: tuple[str, float]) -> Any:
    """Stand for a machine of two cubes with four PEs each; `last` gives the last call of some, by pe0, pe1, …."""
    sites = [SimpleNamespace(prefix=f"sip0.cube{i // 4}.pe{i % 4}", index=i) for i in range(8)]
    made = {pe: PathStep(None, call, "pe_dma", HERE, 0.0, at) for pe, (call, at) in last.items()}
    states = {int(pe[2:]): SimpleNamespace(last=step) for pe, step in made.items()}
    kernels = SimpleNamespace(states=states)
    return SimpleNamespace(layout=SimpleNamespace(pes=sites), find=lambda kind: kernels)


def launch(kernel: str, ended: dict[int, float], program: Any = None) -> Any:
    """Stand for a launch that PEs have ended."""
    launched = SimpleNamespace(ended_ns=ended, started_ns=ended)
    return SimpleNamespace(name=f"the launch of {kernel!r}", site=HERE, program=program, launch=launched)


def test_names_of_pes_are_joined_cube_by_cube() -> None:
    """Runs as one, and of many the first few."""
    assert pe_names(machine(), [0, 1, 2, 5, 7]) == "sip0.cube0.pe0-2, sip0.cube1.pe1, sip0.cube1.pe3"
    sites = [SimpleNamespace(prefix=f"sip{i}.cube0.pe0") for i in range(9)]
    many = SimpleNamespace(layout=SimpleNamespace(pes=sites))
    assert pe_names(many, range(9)) == "sip0.cube0.pe0, sip1.cube0.pe0, sip2.cube0.pe0, sip3.cube0.pe0, 5 more PEs"  # type: ignore[arg-type]


def test_what_those_who_wait_did_before() -> None:
    """One line where all did alike, one for each call where not, none where nobody did anything."""
    assert list(before_that(machine(), [0, 1])) == []
    alike = machine(pe0=("tl.load", 10.0), pe1=("tl.load", 20.0))
    assert list(before_that(alike, [0, 1])) == [f"before that they did tl.load at {LINE}, until 10 ns to 20 ns"]
    assert list(before_that(alike, [1])) == [f"before that it did tl.load at {LINE}, until 20 ns"]
    assert list(before_that(machine(pe0=("tl.dot", 10.0)), [0, 1, 2])) == [
        "before that:",
        f"  sip0.cube0.pe0 did tl.dot at {LINE}, until 10 ns",
        "  sip0.cube0.pe1-2 did nothing",
    ]


def test_what_those_who_run_nothing_did_last() -> None:
    """The launch that they ended, and their last call in it, where they made one."""
    found = machine(pe0=("tl.store", 30.0))
    shared: Any = SimpleNamespace(launches=[launch("early", {0: 5.0}), launch("late", {0: 40.0, 1: 50.0})])
    assert list(idle_pes(found, shared, [0, 1, 5])) == [
        f"sip0.cube0.pe0 ended its part of the launch of 'late', called at {LINE}, at 40 ns; the last call there was "
        f"tl.store at {LINE}, until 30 ns",
        f"sip0.cube0.pe1 ended its part of the launch of 'late', called at {LINE}, at 50 ns, without a call",
        "sip0.cube1.pe1 has run no kernel",
    ]
    both = machine(pe2=("tl.store", 30.0), pe3=("tl.store", 31.0))
    ended: Any = SimpleNamespace(launches=[launch("k", {2: 40.0, 3: 40.0})])
    assert list(idle_pes(both, ended, [3, 2])) == [
        f"sip0.cube0.pe2-3 ended their part of the launch of 'k', called at {LINE}, at 40 ns; the last call there was "
        f"tl.store at {LINE}, until 30 ns to 31 ns"
    ]


def test_what_a_program_that_has_ended_launched_last() -> None:
    """Of its own launches the last, or that there was none."""
    program, other = SimpleNamespace(name="rank 0"), SimpleNamespace(name="rank 1")
    shared: Any = SimpleNamespace(
        launches=[launch("a", {0: 5.0}, program), launch("b", {1: 7.0, 2: 9.0}, program), launch("c", {3: 11.0}, other)]
    )
    ask: Any = ended_program
    assert ask(shared, program) == (
        f"the program of rank 0 has ended; its last launch was the launch of 'b', called at {LINE}, over at 9 ns"
    )
    nobody = SimpleNamespace(name="rank 2")
    assert ask(shared, nobody) == "the program of rank 2 has ended, and has launched nothing"
