"""Composites among the other calls of a kernel: what orders them, what they hold, and whose they are."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernbench_core as kb
from kernbench_core.errors import KernelError, PageFaultError, ShapeError, UninitializedReadError
from kernbench_core.values.dtypes import numpy_dtype
from tests.builtin.working_machine import on_machine
from tests.core.kernel.program_order import actions, follow
from tests.core.kernel_rig import Rig
from tests.core.memory.watched_rig import Watched

X = np.arange(256, dtype=np.float32).reshape(16, 16)


@given(actions("composite", "composite"), st.integers(1, 2))
@settings(max_examples=40)
def test_composites_beside_loads_and_stores_keep_program_order(
    actions: list[tuple[str, str, int, int]], launches: int
) -> None:
    """Inputs are as memory holds them at issue, the output is there from then on: numpy's copies."""
    follow(actions, launches)


def test_composites_obey_the_rule() -> None:
    """An integer that meets f16 in a composite is rounded to it first; an 8-bit float and an integer are refused."""
    rig = Rig()
    a, b = np.full((2, 2), 0.5, np.float16), np.array([[2049, 3], [4097, 1]], np.int32)
    said: list[str] = []

    def kernel(x: Any, y: Any, e: Any, out: Any, tl: Any) -> None:
        tl.composite("math", tl.ref(x, (2, 2)), tl.ref(y, (2, 2)), out, math_op="add", wait=True)
        with pytest.raises(ShapeError) as caught:
            tl.composite("math", tl.ref(e, (2, 2)), tl.ref(y, (2, 2)), out, math_op="mul")
        said.append(re.sub(r"at \S+:\d+", "at LINE", str(caught.value)))

    out = rig.empty((2, 2), "f32")
    rig.run(kernel, rig.tensor(a), rig.tensor(b), rig.tensor(a.astype(numpy_dtype("f8e4m3"))), out)
    np.testing.assert_array_equal(rig.numpy(out), b.astype(np.float16).astype(np.float32) + np.float32(0.5))
    assert said == [
        "tl.composite at LINE: An 8-bit float must not meet an integer, as f8e4m3 and int32 do; cast one of them first."
    ]


def test_a_composite_depends_on_the_writes_that_it_found_only() -> None:
    """What was overwritten before it, or lies beside what it reads, is no dependency, as of loads."""
    rig = Rig(overhead=1.0)
    x, y = rig.tensor(np.zeros((16, 8), np.float16), "x"), rig.empty((8, 8), "f32", "y")

    def kernel(x: Any, y: Any, tl: Any) -> None:
        tl.store(x, tl.zeros((8, 8), "f16"))  # ops 0 and 1
        tl.store(x, tl.zeros((8,), "f16"))  # 2 and 3: the first row
        tl.store(x + 8, tl.zeros((8,), "f16"))  # 4 and 5: the second
        tl.load(x, shape=(8,))  # 6
        tl.load(x + 8, shape=(2, 8))  # 7: the second row, and the third of op 1
        tl.composite("gemm", tl.ref(x, (8, 8)), tl.ref(x + 8, (8, 1), (8, 1)), tl.ref(y, (8, 1)), wait=True)  # 8

    rig.run(kernel, x, y)
    found = [record.dependency_ids for record in rig.log]
    assert found[6:] == [[2, 3], [0, 1, 4, 5], [0, 1, 2, 3, 4, 5]]


def test_uninitialised_tensors_are_refused_on_read() -> None:
    """Nothing was written there: the tensor is named."""
    rig = Rig()

    def kernel(x: Any, tl: Any) -> None:
        tl.composite("math", tl.ref(x, (2, 2)), out=x, math_op="exp")

    with pytest.raises(UninitializedReadError, match=r"element \[0, 0\] of tensor 'fresh' \(operand a\) was not;"):
        rig.run(kernel, rig.empty((2, 2), name="fresh"))


def test_space_waits_for_a_composite_that_reads_it() -> None:
    """A tile that one in flight uses stays, though it was freed."""
    found: list[int] = []

    def kernel(x: Any, out: Any, tl: Any) -> None:
        a = tl.load(x, shape=(16, 16))
        tl.composite("math", a, math_op="exp", out=out)
        tl.free(a)
        found.append(tl._state.tcm.fit.used)
        tl.wait()
        found.append(tl._state.tcm.fit.used)

    machine = Rig()
    x = machine.tensor(np.zeros((16, 16), np.float32))
    machine.run(kernel, x, machine.empty((16, 16)))
    assert found == [1024, 0]


def test_commands_of_the_language_hold_what_they_use() -> None:
    """Freed tiles of loads, composites and epilogues in flight are not handed out: no hazard."""

    def kernel(x: Any, out: Any, tl: Any) -> None:
        late = tl.load(x, shape=(16, 16), wait=False)
        tl.free(late)
        a, bias = tl.load(x, shape=(16, 16)), tl.load(x, shape=(16,))
        tl.composite("gemm", a, tl.ref(x, (16, 16)), out, epilogue=[("bias", bias)])
        tl.free(a)
        tl.free(bias)
        tl.full((16, 16), 1.0, "f32")

    rig = Watched(1)
    rig.launch_all((kernel, {"x": rig.tensor(X, "x"), "out": rig.empty((16, 16))}))
    assert rig.found() == ()


@pytest.mark.parametrize("waits", [False, True])
def test_an_edge_orders_what_the_sender_has_waited_for(waits: bool) -> None:
    """An edge from PE 0 to PE 1 after a composite's store: ordered only if PE 0 waited for it."""
    order: list[Any] = []

    def kernel(x: Any, tl: Any) -> None:
        hazards = tl._state.hazards
        if tl.program_id(0) == 0:
            tl.composite("math", tl.ref(x, (4, 16)), out=x, math_op="exp")
            for _ in range(200):
                tl.zeros((1,), "f32")
            if waits:
                tl.wait()
            order.append(tl.op_id())
            hazards.publish(order[0])
            return
        for _ in range(300):
            tl.zeros((1,), "f32")
        hazards.order(order[0], 1)
        tl.store(x, tl.zeros((4, 16), "f32"))

    rig = Watched()
    rig.launch_all((kernel, {"x": rig.tensor(X)}))
    kinds = sorted(hazard.kind for hazard in rig.found())
    assert kinds == ([] if waits else ["unordered_read", "unordered_writes"])


def test_waiting_for_everything_covers_what_was_complete_long_before() -> None:
    """tl.wait() without handles orders every command before it, also those that the kernel no longer keeps."""

    def kernel(x: Any, tl: Any) -> None:
        hazards = tl._state.hazards
        if tl.program_id(0) == 0:
            for row in range(80):
                tl.composite("math", tl.ref(x + 16 * row, (1, 16)), out=x + 16 * row, math_op="exp")
                for _ in range(20):
                    tl.zeros((1,), "f32")
            assert len(tl.in_flight) < 70
            tl.wait()
            hazards.publish((0, 10**6))
            return
        for _ in range(2500):
            tl.zeros((1,), "f32")
        hazards.order((0, 10**6), 1)
        tl.store(x, tl.zeros((1, 16), "f32"))

    rig = Watched()
    rig.launch_all((kernel, {"x": rig.tensor(np.zeros((80, 16), np.float32))}))
    assert rig.found() == ()


def mine(x: Any, tl: Any) -> None:
    """Store, load and store again one's own rows, waiting for nothing in between."""
    rows = x + 64 * tl.program_id(0)
    tl.composite("math", tl.ref(rows, (4, 16)), out=rows, math_op="exp")
    tile = tl.load(rows, shape=(4, 16), wait=False)
    tl.store(rows, tile)


def test_own_uses_are_in_program_order() -> None:
    """A PE's un-waited store is visible to its own loads; other PEs have other rows."""
    rig = Watched()
    rig.launch_all((mine, {"x": rig.tensor(X)}))
    assert rig.found() == ()


def test_a_composite_of_another_program_is_refused() -> None:
    """Its handle would tell when another PE is done."""
    kept: list[Any] = []

    def kernel(x: Any, y: Any, tl: Any) -> None:
        if tl.program_id(0) == 0:
            kept.append(tl.composite("math", tl.ref(x, (4, 4)), None, y, math_op="relu"))
            tl.wait(kept[0])
        else:
            for _ in range(20):
                tl.load(x)
            tl.store(x, kept[0])

    def bench(rt: Any) -> None:
        rt.launch(kernel, rt.zeros((4, 4)), rt.zeros((4, 4)), grid=(2,))

    with pytest.raises(KernelError) as caught:
        kb.run(bench, **on_machine())
    line = kernel.__code__.co_firstlineno
    assert str(caught.value).splitlines()[0] == (
        f"tl.store at {__file__}:{line + 7} must be given a result of its own program, not the result of "
        f"tl.composite made at {__file__}:{line + 2} by another one; send it with tl.send, or store and load it."
    )


def test_a_composite_of_a_freed_tensor_says_which_call_and_tensor() -> None:
    """The fault names the call, its line, the element and the tensor, as that of a load does."""
    kept: list[Any] = []

    def keep(x: Any, tl: Any) -> None:
        kept.append(tl.ref(x, (2, 2)))

    def use(c: Any, tl: Any) -> None:
        tl.composite("gemm", kept[0], kept[0], c, wait=True)

    def bench(rt: Any) -> None:
        a = rt.tensor(np.ones((2, 2), np.float32), name="a")
        rt.launch(keep, a, grid=(1,))
        rt.free(a)
        rt.launch(use, rt.empty((2, 2)), grid=(1,))

    with pytest.raises(PageFaultError) as caught:
        kb.run(bench, **on_machine())
    here = f"{__file__}:{use.__code__.co_firstlineno + 1}"
    assert str(caught.value).partition("\n")[0] == (
        f"tl.composite at {here} must reach memory that is mapped, and element [0, 0] of tensor 'a' is not: virtual "
        "address 0x100000000 must be mapped, and no tensor lies at or below it; was the tensor freed? Free a tensor "
        "after its last use."
    )


def test_a_tile_of_another_program_is_refused() -> None:
    """As everything that uses one does."""
    kept: list[Any] = []

    def kernel(x: Any, tl: Any) -> None:
        if tl.program_id(0) == 0:
            kept.append(tl.load(x, shape=(4, 4)))
        else:
            for _ in range(8):
                tl.load(x)
            tl.composite("gemm", kept[0], tl.ref(x, (4, 4)), x)

    with pytest.raises(KernelError) as caught:
        kb.run(lambda rt: rt.launch(kernel, rt.zeros((4, 4)), grid=(2,)), **on_machine())
    line = kernel.__code__.co_firstlineno
    assert str(caught.value).splitlines()[0] == (
        f"tl.composite at {__file__}:{line + 6} must be given a result of its own program, not the result of tl.load "
        f"made at {__file__}:{line + 2} by another one; send it with tl.send, or store and load it."
    )
