"""Which launches a later one may read, by what the host has waited for; on the real machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_core.callsite import describe_site
from kernbench_core.compute.executor import DataExecutor
from kernbench_core.compute.prepared import Prepared, prepared
from kernbench_core.errors import PendingDataError, SanityError
from kernbench_core.kernel.bridge import in_kernel
from kernbench_core.values.arrays import Array
from kernbench_core.values.value import Value


def double(x: Any, y: Any, tl: Any) -> None:
    """Write what only phase 2 knows."""
    at = 4 * tl.program_id(0) + tl.arange(0, 4)
    tl.store(y + at, tl.load(x + at) * 2.0)


def branch(y: Any, z: Any, by: int, tl: Any) -> None:
    """Branch on what the PE `by` places on wrote."""
    pe = (tl.program_id(0) + by) % tl.num_programs(0)
    if tl.load(y + 4 * pe).item() > 10:
        tl.store(z + tl.program_id(0), 1.0)


def bench(rt: Any, by: int = 1, wait: bool = True, other: bool = False) -> None:
    """Launch one kernel, and another one that branches on its results."""
    x = rt.tensor(np.arange(4 * rt.n_pes, dtype=np.float32))
    y, z = rt.zeros((4 * rt.n_pes,)), rt.zeros((rt.n_pes,))
    first = rt.launch(double, x, y, wait=False)
    if other:  # the host does something else in between, for so long that the launch is over
        rt.zeros((1 << 16,))
        assert first.request.response is not None
    if wait:
        rt.wait(first)
    rt.launch(branch, y, z, by)
    heads = 8.0 * ((np.arange(rt.n_pes) + by) % rt.n_pes)
    rt.check(z, (heads > 10).astype(np.float32))


@pytest.mark.parametrize("by", [0, 1])
def test_a_kernel_branches_on_the_results_of_a_launch_that_was_waited_for(by: int) -> None:
    """And the data of its stores is right."""
    result = kb.run(bench, "tiny", params={"by": by}, verify_data=True)
    assert result.verification is not None and result.verification.ok
    assert result.hazards == ()


def test_each_pe_knows_its_own_earlier_launches() -> None:
    """Launches of one PE are in order, waited for or not."""
    result = kb.run(bench, "tiny", params={"by": 0, "wait": False}, verify_data=True)
    assert result.verification is not None and result.verification.ok


@pytest.mark.parametrize("other", [False, True])
def test_a_launch_that_was_not_waited_for_is_not_read(other: bool) -> None:
    """Whether it was over by then is a matter of this run's timing, and is not asked."""
    with pytest.raises(PendingDataError) as caught:
        kb.run(bench, "tiny", params={"wait": False, "other": other})
    line = describe_site((branch.__code__, 0)).rpartition(":")[0]
    first = branch.__code__.co_firstlineno + 3
    assert str(caught.value).splitlines()[0] == (
        f"item() at {line}:{first} must have data that is known while the kernel runs, but the host submitted "
        f"this launch without waiting for the one that made the result of tl.load at {line}:{first}; wait for that one "
        "first."
    )


@pytest.mark.parametrize("wait", [True, False])
def test_programs_side_by_side_know_what_their_parent_did_and_hand_on_what_they_did(wait: bool) -> None:
    """A program begins with what its parent knows; the parent knows in the end of all that it launched."""

    def child(i: int, rt: Any, x: Any, y: Any, z: Any) -> None:
        rt.launch(branch, y, z, 1)
        rt.launch(double, y, x, wait=wait)

    def parent(rt: Any) -> None:
        x = rt.tensor(np.arange(4 * rt.n_pes, dtype=np.float32))
        y, z, w = rt.zeros((4 * rt.n_pes,)), rt.zeros((rt.n_pes,)), rt.zeros((rt.n_pes,))
        rt.launch(double, x, y)
        rt.side_by_side(child, [0], (x, y, z))
        rt.launch(branch, x, w, 1)
        heads = 8.0 * ((np.arange(rt.n_pes) + 1) % rt.n_pes)
        rt.check(z, (heads > 10).astype(np.float32))
        rt.check(w, (2 * heads > 10).astype(np.float32))

    result = kb.run(parent, "tiny", verify_data=True)
    assert result.verification is not None and result.verification.ok


@pytest.mark.parametrize("sent", [False, True])
def test_the_first_op_of_a_launch_is_not_of_an_earlier_one(sent: bool) -> None:
    """Neither its own PE nor one that receives its result may read it, with a launch before or without."""

    def kernel(tl: Any) -> None:
        tile = tl.full((4,), 1.0, "f32")
        if sent and tl.program_id(0) == 0:
            tl.send(tile, 1)
        elif not sent or tl.program_id(0) == 1:
            float((tl.recv((4,), "f32", 0) if sent else tile)[0])

    def bench(rt: Any, before: int) -> None:
        x = rt.tensor(np.zeros(4 * rt.n_pes, np.float32))
        for _ in range(before):
            rt.launch(double, x, x)
        rt.launch(kernel)

    for before in (0, 1):
        with pytest.raises(PendingDataError) as caught:
            kb.run(bench, "tiny", params={"before": before})
        assert "exists only after it; branch on loaded data" in str(caught.value)


def test_a_pe_reads_a_foreign_result_through_a_message() -> None:
    """What a neighbour loaded of an earlier launch and sent on is as known as if it were loaded here."""

    def kernel(y: Any, z: Any, tl: Any) -> None:
        pe, n = tl.program_id(0), tl.num_programs(0)
        tl.send(tl.load(y + 4 * pe + tl.arange(0, 4)), (pe + 1) % n)
        found = tl.recv((4,), "f32", (pe - 1) % n)
        tl.store(z + pe, float(found[1]))

    def bench(rt: Any) -> None:
        x = rt.tensor(np.arange(4 * rt.n_pes, dtype=np.float32))
        y, z = rt.zeros((4 * rt.n_pes,)), rt.zeros((rt.n_pes,))
        rt.launch(double, x, y)
        rt.launch(kernel, y, z)
        rt.check(z, np.roll(2 * np.arange(1, 4 * rt.n_pes, 4), 1).astype(np.float32))

    result = kb.run(bench, "tiny", verify_data=True)
    assert result.verification is not None and result.verification.ok


@pytest.mark.parametrize("which", [{"verify_data": True}, {"verify_ops": True}])
def test_phase_2_confirms_what_was_branched_on(which: dict[str, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that was given other data than phase 2 computes went another way: its time must not be used."""
    right = DataExecutor.materialize

    def wrong(executor: DataExecutor, value: Value) -> Any:
        found = right(executor, value)
        return found + np.float32(1.0) if in_kernel() else found

    monkeypatch.setattr(DataExecutor, "materialize", wrong)
    kb.run(bench, "tiny", params={"by": 1})  # nobody looks
    with pytest.raises(SanityError) as caught:
        kb.run(bench, "tiny", params={"by": 1}, **which)
    read, made = (f"{__file__}:{one.__code__.co_firstlineno + 3}" for one in (branch, double))
    told, _, maker = str(caught.value).splitlines()[0].partition(" It was made by ")
    assert told == (
        f"do not use this result: what item() at {read} read while the run went on, computed again, must equal what is "
        "expected within rtol=1e-05, atol=1e-05, but 1 of 1 elements differ; the worst is []: got 8.0, expected 9.0."
    )
    assert maker.startswith("mul (op 1 of PE 1, sip0.cube0.pe1.pe_math, ") and f" at {made}, in the launch of" in maker


def test_the_host_is_confirmed_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results that were dropped, and come out otherwise when they are computed again, are not what it has read."""
    filled: list[int] = []

    def drift(*kind: Any) -> Prepared:
        right = prepared(*kind).compute

        def compute(arrays: Sequence[Array]) -> Array:
            filled.append(1)
            return right(arrays) + np.float32(len(filled))

        return Prepared(compute)

    monkeypatch.setattr("kernbench_core.compute.kinds.prepared", drift)
    monkeypatch.setattr("kernbench_core.compute.op_graph._WINDOW_BYTES", 1)

    def reading(rt: Any) -> None:
        x, y = (rt.zeros((4 * rt.n_pes,)) for _ in "xy")
        rt.launch(double, x, y)
        y.numpy()
        rt.launch(double, y, y)  # nothing holds what it reads when it is over
        y.numpy()

    with pytest.raises(SanityError, match="what the host at "):
        kb.run(reading, "tiny", verify_data=True)
