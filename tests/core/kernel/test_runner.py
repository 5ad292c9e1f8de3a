"""The runner charges simulated time, keeps order, and knows the line that waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernbench_builtin.saved.saved_run import load_run, save_run
from kernbench_core.compute.executor import DataExecutor
from kernbench_core.errors import UninitializedReadError
from kernbench_core.oplog.description import Access
from tests.core.kernel_rig import UNIT_NS, Rig

DMA, GEMM, MATH = UNIT_NS["pe_dma"], UNIT_NS["pe_gemm"], UNIT_NS["pe_math"]
X = np.arange(256, dtype=np.float32).reshape(16, 16)


def test_blocking_calls_take_their_time_one_after_another() -> None:
    """Load, dot, math and store each cost the dispatch overhead and the unit's time."""

    def kernel(x: Any, tl: Any) -> None:
        a = tl.load(x, shape=(16, 16))
        tl.store(x, tl.dot(a, a) + 1.0, shape=(16, 16))

    rig = Rig(overhead=3.0)
    assert rig.run(kernel, rig.tensor(X)) == 3 + DMA + 3 + GEMM + 3 + MATH + 3 + DMA


def test_unwaited_loads_overlap_and_wait_by_themselves() -> None:
    """Two loads in flight cost one round trip; a use waits, and so does the end of the program."""

    def overlapped(x: Any, tl: Any) -> None:
        a = tl.load(x, shape=(16, 16), wait=False)
        b = tl.load(x, shape=(16, 16), wait=False)
        a + b

    def dropped(x: Any, tl: Any) -> None:
        tl.load(x, shape=(16, 16), wait=False)

    def waited(x: Any, tl: Any) -> None:
        a = tl.load(x, shape=(16, 16), wait=False)
        tl.load(x, shape=(16, 16), wait=False)
        tl.wait(a)
        tl.wait(a)
        tl.wait()
        tl.wait()

    rig = Rig(overhead=3.0)
    x = rig.tensor(X)
    assert rig.run(overlapped, x) == 3 + 3 + DMA + 3 + MATH
    assert rig.run(dropped, x) == 3 + DMA
    assert rig.run(waited, x) == 3 + 3 + DMA


def test_waiting_for_any_of_several_commands() -> None:
    """The first that is complete ends the wait, one that is complete already takes no time, the others go on."""
    seen: list[tuple[bool, bool]] = []

    def kernel(x: Any, tl: Any) -> None:
        a = tl.load(x, shape=(16, 16), wait=False)
        b = tl.load(x, shape=(16, 16), wait=False)
        for _ in range(3):
            pending = [handle.command for handle in (a, b) if not handle.command.complete]
            tl.wait_for_any(pending or [a.command])
            seen.append((a.command.complete, b.command.complete))
        tl.wait(b, a)

    rig = Rig(overhead=3.0)
    assert rig.run(kernel, rig.tensor(X)) == 3 + 3 + DMA
    assert seen == [(True, False), (True, True), (True, True)]


def test_eager_arithmetic_is_free() -> None:
    """Index tensors, program ids and scalars cost no time and no command."""

    def kernel(x: Any, tl: Any) -> None:
        offsets = tl.program_id(0) * 4 + tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 4)[None, :]
        assert type(tl.program_id(0)) is int
        assert int(tl.sum(offsets)) == 408
        assert tl.cdiv(7, 2) == 4
        assert tl.maximum(3, tl.num_programs(0)) == 3
        bool(tl.max(tl.where(offsets < 9, offsets, 0)) == 8)

    rig = Rig()
    assert rig.run(kernel, rig.tensor(X)) == 0
    assert rig.ops() == []


def test_programs_run_one_after_another_on_their_pe() -> None:
    """Five programs on two PEs: three and two in a row; starts and ends are noted in the launch."""
    order: list[tuple[int, float]] = []

    def kernel(x: Any, tl: Any) -> None:
        order.append((tl.program_id(0), rig.env.now))
        tl.load(x, shape=(4, 4))

    rig = Rig(pes=2, overhead=0.0)
    rig.run(kernel, rig.tensor(X), grid=5)
    assert order == [(0, 0.0), (1, 0.0), (2, DMA), (3, DMA), (4, 2 * DMA)]
    assert rig.launch is not None
    assert (rig.launch.started_ns, rig.launch.ended_ns) == ({0: 0.0, 1: 0.0}, {0: 3 * DMA, 1: 2 * DMA})


def test_op_ids_count_up_over_launches() -> None:
    """No two commands of a PE share an issue number, whichever launch and program they belong to."""

    def kernel(x: Any, tl: Any) -> None:
        tl.load(x, shape=(4, 4)) + 1.0

    rig = Rig(pes=2)
    x = rig.tensor(X)
    rig.run(kernel, x, grid=3)
    rig.run(kernel, x, grid=2)
    ids = [record.op_id for record in rig.log]
    assert len(set(ids)) == len(ids) == 10
    assert sorted(ids) == [(0, i) for i in range(6)] + [(1, i) for i in range(4)]


def test_a_store_is_visible_at_issue_and_a_load_samples_at_completion() -> None:
    """A load that was issued before another program's store, and completes after its issue, sees the new bytes."""
    seen: dict[int, float] = {}

    def kernel(x: Any, y: Any, tl: Any) -> None:
        if tl.program_id(0):
            value = tl.load(y, shape=(1, 1))
            tl.store(x, value, shape=(1, 1))
        else:
            early = tl.load(x, shape=(1, 1))
            late = tl.load(x, shape=(1, 1))
            seen.update({0: early[0, 0], 1: late[0, 0]})

    rig = Rig(pes=2, overhead=0.0)
    rig.run(kernel, rig.tensor(np.array([[1.0]], np.float32)), rig.tensor(np.array([[2.0]], np.float32)))
    assert seen == {0: 1.0, 1: 2.0}


def test_pending_content_is_loaded_as_pending_and_never_stale() -> None:
    """What a store of a pending result hides is not seen again by a later load."""

    def kernel(x: Any, tl: Any) -> None:
        a = tl.load(x, shape=(16, 16))
        tl.store(x, a + 1.0, shape=(16, 16))
        b = tl.load(x + 8, shape=(16, 4), strides=(16, 1))
        assert b.value.pending
        tl.store(x + 8, b * 2.0, strides=(16, 1))

    rig = Rig()
    x = rig.tensor(X)
    rig.run(kernel, x)
    want = X + 1
    want[:, 8:12] *= 2
    np.testing.assert_array_equal(rig.numpy(x), want)


def test_complete_commands_that_nobody_waited_for_are_forgotten() -> None:
    """A thousand un-waited loads do not stay listed; one that failed does, and ends the program."""
    left: list[int] = []

    def kernel(x: Any, tl: Any) -> None:
        for _ in range(1000):
            tl.load(x, shape=(4, 4), wait=False)
            tl.zeros((1,), "f32")
        left.append(len(tl.in_flight))

    def failing(x: Any, y: Any, tl: Any) -> None:
        tl.load(y, shape=(4, 4), wait=False)
        kernel(x, tl)

    rig = Rig()
    x = rig.tensor(X)
    rig.run(kernel, x)
    assert left[0] < 130
    with pytest.raises(UninitializedReadError, match="in kernel 'failing'"):
        rig.run(failing, x, rig.empty((4, 4)))


def test_the_suspended_line_is_known() -> None:
    """While a kernel waits, the runner says where and for what; afterwards it says nothing."""
    words: list[Any] = []

    def kernel(x: Any, tl: Any) -> None:
        tl.load(x, shape=(4, 4))

    rig = Rig(overhead=2.0)
    runner = rig.runners[0]
    x = rig.tensor(X)
    watch = rig.env.timeout(50)
    watch.callbacks.append(lambda _: words.extend((runner.where(), runner.waits_in_words())))
    rig.run(kernel, x)
    line = f"{__file__}:{kernel.__code__.co_firstlineno + 1}"
    assert words[0] == line
    assert words[1].sentence == f"kernel 'kernel' at {line} waits for tl.load from its pe_dma"
    assert words[1].since_ns == 2.0
    assert runner.where() is None
    assert runner.waits_in_words() is None


def test_a_kernel_that_left_commands_in_flight_is_named_with_their_lines() -> None:
    """At its end a kernel waits for what it did not wait for itself; no line of it is suspended then."""
    words: list[Any] = []

    def kernel(x: Any, tl: Any) -> None:
        tl.load(x, shape=(4, 4), wait=False)

    rig = Rig(overhead=2.0)
    runner = rig.runners[0]
    x = rig.tensor(X)
    watch = rig.env.timeout(50)
    watch.callbacks.append(lambda _: words.append(runner.waits_in_words()))
    rig.run(kernel, x)
    line = f"{__file__}:{kernel.__code__.co_firstlineno + 1}"
    assert words[0].sentence == f"kernel 'kernel' at its end, after {line}, waits for tl.load from its pe_dma"


def test_print_and_breakpoint_work_in_kernels(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both behave as anywhere else, in the middle of simulated time."""
    import sys

    names: list[str] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: names.append(sys._getframe(1).f_code.co_name))

    def kernel(x: Any, tl: Any) -> None:
        value = tl.load(x + 3)
        print("value", value.item())
        tl.device_print("pid", tl.program_id(0), value)
        breakpoint()

    rig = Rig()
    rig.run(kernel, rig.tensor(X))
    assert capsys.readouterr().out == "value 3.0\npid 0 3.0\n"
    assert names == ["kernel"]


def test_without_data_shapes_and_times_are_the_same() -> None:
    """Nothing is stored; the log and the time are those of the run with data."""

    def kernel(x: Any, out: Any, tl: Any) -> None:
        a = tl.load(x + tl.arange(0, 20), mask=tl.arange(0, 20) < 16, other=0.0)
        i = tl.load(out, shape=(20,)) + 1
        tl.store(out, (a + i).to(tl.int32), mask=tl.arange(0, 20) < 16)

    times, names = [], []
    for data in (True, False):
        rig = Rig(data=data)
        times.append(rig.run(kernel, rig.tensor(X), rig.tensor(np.zeros(20, np.int32))))
        names.append(rig.ops())
        assert bool(rig.store.spaces()) == data
    assert times[0] == times[1]
    assert names[0] == names[1]


def test_a_launch_searches_the_pes_once() -> None:
    """However many PEs and launches: the list of PEs is gone through once."""

    class Counted(tuple[Any, ...]):
        """Count how often it is gone through."""

        times = 0

        def __iter__(self) -> Any:
            Counted.times += 1
            return super().__iter__()

    rig = Rig(pes=4)
    object.__setattr__(rig.design, "pes", Counted(rig.design.pes))
    Counted.times = 0
    for _ in range(3):
        rig.run(lambda tl: None)
    assert Counted.times == 1


def test_many_round_trips_of_one_place(tmp_path: Path) -> None:
    """A value that is stored and loaded again and again is as deep as after one trip: compare, save, load."""

    def kernel(x: Any, tl: Any) -> None:
        tl.store(x, tl.load(x, shape=(4, 4)) + 1.0)
        for _ in range(1500):
            tl.store(x, tl.load(x, shape=(4, 4)))

    rig = Rig()
    x = rig.tensor(X[:4, :4])
    rig.run(kernel, x)
    expected = {"x": (Access("hbm", x.regions), X[:4, :4] + 1)}
    verdict = DataExecutor(rig.log, rig.store).verify(expected)
    assert (verdict.ok, verdict.failures) == (True, ())
    save_run(tmp_path, rig.log, rig.store)
    assert load_run(tmp_path).executor().verify(expected).ok
