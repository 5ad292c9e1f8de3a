"""The path that each launch notes, against the whole chain of causes, which is another program, and by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernbench as kb
from kernbench_builtin.machines.figures.launch import LaunchFigures
from kernbench_core.kernel.steps import PathStep

#: What one command's dispatch and its way to the unit take, in ns: the chain of causes counts them to the command.
_ON_ITS_WAY = 40.0


def by_call(launch: LaunchFigures) -> dict[str, float]:
    """Return ns by call, "" for the CPU."""
    found: dict[str, float] = {}
    for each in launch.path:
        found[each.call] = found.get(each.call, 0.0) + each.ns
    return found


def explained(result: Any) -> tuple[dict[str, float], dict[str, int]]:
    """Return ns and ops by call of the chain of causes of the only launch, from its start on the PE to its end."""
    ns: dict[str, float] = {}
    ops: dict[str, int] = {}
    (launch,) = result.explain.launches
    for fold in launch.folds:
        if fold.line is not None:
            ns[fold.what] = ns.get(fold.what, 0.0) + fold.ns
            ops[fold.what] = ops.get(fold.what, 0) + fold.ops
    return ns, ops


def launched(kernel: Any, *, explain: bool = True, programs: int = 1) -> Any:
    """Run a kernel over two matrices on the PEs of the smallest machine."""

    def bench(rt: Any) -> None:
        a, c = rt.zeros((256, 256), "f16", name="a"), rt.zeros((256, 256), "f16", name="c")
        rt.launch(kernel, a, c, grid=(programs,))

    return kb.run(bench, "tiny", explain=explain, data=False)


def agree(result: Any) -> None:
    """Assert that both paths give each call the same time."""
    (launch,) = result.launches
    mine, (theirs, ops) = by_call(launch), explained(result)
    assert sum(mine.values()) == launch.time_ns
    for call in theirs.keys() | mine.keys() - {""}:
        slack = _ON_ITS_WAY * (ops.get(call, 0) + 1) + 0.02 * launch.time_ns
        assert mine.get(call, 0.0) == pytest.approx(theirs.get(call, 0.0), abs=slack), (call, mine, theirs)


def test_loads_ahead_hide_what_is_computed_under_them() -> None:
    """Products that are shorter than the loads under way are not on the path, though the kernel waits for them."""

    def kernel(a: Any, c: Any, tl: Any) -> None:
        tiles = [tl.load(a, shape=(128, 256), dtype="f16", wait=False)]
        for _ in range(4):
            tiles.append(tl.load(a, shape=(128, 256), dtype="f16", wait=False))
            small = tl.full((16, 16), 1.0, "f16")
            tl.dot(small, small)
            tl.wait(tiles.pop(0))
        tl.wait(tiles.pop())

    result = launched(kernel)
    (launch,) = result.launches
    assert by_call(launch)["tl.load"] > 0.9 * launch.time_ns
    agree(result)


def test_a_receiver_is_as_late_as_its_sender() -> None:
    """The path of who waits for a message leads through what its sender did before."""

    def kernel(a: Any, c: Any, tl: Any) -> None:
        if tl.program_id(0) == 0:
            tl.load(a, shape=(256, 256), dtype="f16")
            tl.send(tl.full((8, 8), 1.0, "f16"), 1)
        elif tl.program_id(0) == 1:
            tl.store(c, tl.recv((8, 8), "f16", 0))

    result = launched(kernel, programs=2)
    (launch,) = result.launches
    path = by_call(launch)
    assert launch.last.endswith("pe1")
    assert path["tl.load"] > 0.5 * launch.time_ns
    assert path.keys() >= {"tl.load", "tl.full", "tl.recv", "tl.store"}
    agree(result)


@st.composite
def kernels(draw: st.DrawFn) -> list[tuple[str, int]]:
    """Draw what a kernel does, one after another, with the rows of its tiles."""
    calls = st.sampled_from(["load", "ahead", "wait", "dot", "exp", "store"])
    return draw(st.lists(st.tuples(calls, st.sampled_from([16, 64, 128])), min_size=3, max_size=14))


@settings(max_examples=25, deadline=None)
@given(kernels())
def test_random_kernels_have_the_path_of_their_causes(steps: list[tuple[str, int]]) -> None:
    """Loads that are waited for at once and later, products, vector ops and stores, on one PE."""

    def kernel(a: Any, c: Any, tl: Any) -> None:
        tile = tl.full((16, 16), 1.0, "f16")
        ahead: list[Any] = []
        for call, rows in steps:
            if call == "load":
                tl.load(a, shape=(rows, 16), dtype="f16")
            elif call == "ahead":
                ahead.append(tl.load(a, shape=(rows, 64), dtype="f16", wait=False))
            elif call == "wait" and ahead:
                tl.wait(ahead.pop(0))
            elif call == "dot":
                tl.dot(tl.full((rows, 16), 1.0, "f16"), tile)
            elif call == "exp":
                tl.exp(tl.full((rows, 16), 1.0, "f32"))
            elif call == "store":
                tl.store(c, tile)

    agree(launched(kernel))


def test_a_long_path_is_added_up_on_its_way() -> None:
    """What is kept does not grow, and nothing is lost of it; a step that others share is theirs, too."""
    site = (test_a_long_path_is_added_up_on_its_way.__code__, 2)
    step: PathStep | None = None
    for number in range(10_000):
        step = PathStep(step, "tl.load" if number % 2 else "tl.dot", "", site, 2.0 * number, 2.0 * number + 1.5)
        if number == 5_000:
            other = PathStep(step, "tl.exp", "", site, 10_001.5, 10_003.0)
    assert step is not None
    sums = {call: (ns, times) for call, _, _, ns, times in step.sums().values()}
    assert sums == {"tl.load": (7_500.0, 5_000), "tl.dot": (7_500.0, 5_000)}
    shared = {call: times for call, _, _, _, times in other.sums().values()}
    assert shared == {"tl.load": 2_500, "tl.dot": 2_501, "tl.exp": 1}
    kept = 0
    while step is not None:
        step, kept = step.before, kept + 1
    assert kept <= 4_096
