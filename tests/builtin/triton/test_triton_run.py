"""Kernels written in Triton, launched on a machine that is held open: held against numpy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any

import numpy as np
import pytest

import kernbench as kb

# mypy: disable-error-code="import-not-found"


def add_of_vectors() -> Any:
    """Give a kernel that adds vectors; called where `triton` is kernbench's."""
    import triton
    import triton.language as tl

    @triton.jit
    def add_kernel(x_ptr: Any, y_ptr: Any, out_ptr: Any, n: Any, BLOCK: tl.constexpr) -> None:  # noqa: N803 - as kernels are written
        at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n)
        y = tl.load(y_ptr + at, mask=at < n)
        tl.store(out_ptr + at, x + y, mask=at < n)

    return add_kernel


@pytest.mark.parametrize("n", [1, 255, 1000])
def test_what_a_kernel_wrote_is_in_the_arrays(n: int) -> None:
    """Of lengths that fill no block, block and grid from the arguments, and with a hint."""
    rng = np.random.default_rng(n)
    x, y = rng.standard_normal(n, np.float32), rng.standard_normal(n, np.float32)
    out = np.full(n, np.nan, np.float32)
    before = x.copy()
    with kb.triton("tiny") as sim:
        import triton

        kernel = add_of_vectors()
        kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=256, num_warps=4)
        assert np.array_equal(out, x + y)
        kernel[(-(-n // 256),)](out, y, out, n, BLOCK=256)
        assert np.array_equal(out, x + y + y)
    assert np.array_equal(x, before)
    assert [figures.kernel for figures in sim.launches] == ["add_kernel", "add_kernel"]
    assert sim.result is not None
    assert sim.result.timing.total_ns > sum(figures.time_ns for figures in sim.launches) > 0


def test_a_view_is_taken_by_its_storage() -> None:
    """A kernel reaches before and behind a view with strides, as Triton's kernels do, and writes there."""
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def negate_column(x_ptr: Any, stride: Any, rows: tl.constexpr) -> None:
            at = x_ptr + tl.arange(0, rows) * stride
            tl.store(at, -tl.load(at))
            tl.store(x_ptr - 1, 100.0)

        negate_column[(1,)](whole[:, 2], whole.strides[0] // 4, rows=4)
    expected = np.arange(24, dtype=np.float32).reshape(4, 6)
    expected[:, 2] *= -1
    expected[0, 1] = 100
    assert np.array_equal(whole, expected)


def test_what_the_host_changes_between_launches_is_there() -> None:
    """Also where the device has computed the array itself before."""
    x = np.ones(8, np.float32)
    with kb.triton("tiny"):
        kernel = add_of_vectors()
        kernel[(1,)](x, x, x, 8, BLOCK=8)
        x[3] = 10
        kernel[(1,)](x, x, x, 8, BLOCK=8)
    assert x.tolist() == [4, 4, 4, 20, 4, 4, 4, 4]


def test_a_kernel_branches_on_what_it_has_computed() -> None:
    """Both on a comparison of what it loaded, and on a sum."""
    x = np.array([0.75, 1, 1, 1], np.float32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def branch(x_ptr: Any, n: tl.constexpr) -> None:
            if tl.load(x_ptr) > 0.5:
                tl.store(x_ptr, 7.0)
            total = tl.sum(tl.load(x_ptr + tl.arange(0, n)))
            if total > 9:
                tl.store(x_ptr + 1, total)
            if total > 10:
                tl.store(x_ptr + 2, total)

        branch[(1,)](x, n=4)
    assert x.tolist() == [7, 10, 1, 1]


def test_positions_are_int32_scalars() -> None:
    """They are cast, multiplied, and meet a tile as int32 does: of int8 it becomes int32."""
    out = np.zeros(4, np.int32)
    tile = np.full(4, 100, np.int8)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def place(out_ptr: Any, x_ptr: Any, n: tl.constexpr) -> None:
            first = (tl.program_id(0) * n).to(tl.int64)
            assert first.dtype == tl.int64
            found = tl.load(x_ptr + first + tl.arange(0, n)) * (tl.program_id(0) + 1)
            assert found.dtype == tl.int32
            tl.store(out_ptr + first + tl.arange(0, n), found)

        place[(2,)](out, tile, n=2)
    assert out.tolist() == [100, 100, 200, 200]


def test_triton_is_there_inside_only() -> None:
    """What was imported under its names before is back afterwards."""
    mine = type(sys)("triton")
    sys.modules["triton"] = mine
    try:
        with kb.triton("tiny"):
            import triton

            assert triton is not mine
            assert triton.next_power_of_2(781) == 1024
        assert sys.modules["triton"] is mine
        assert "triton.language" not in sys.modules
    finally:
        del sys.modules["triton"]


def refused(do: Callable[[], object]) -> str:
    """Return the sentence with which kernbench refuses something."""
    with pytest.raises(kb.KernbenchError) as error:
        do()
    return str(error.value)


def test_an_error_comes_up_at_the_launch_and_a_script_goes_on_after_it() -> None:
    """It names the kernel's line; the arrays are as they were, and the next launch runs."""
    x = np.arange(8, dtype=np.float32)
    with kb.triton("tiny") as sim:
        kernel = add_of_vectors()
        sentence = refused(lambda: kernel[(1,)](x, x, x, 9, BLOCK=16))
        line = add_of_vectors.__code__.co_firstlineno + 8
        assert f"tl.load at {__file__}:{line} must stay inside tensor 'x_ptr'" in sentence, sentence
        assert x.tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
        kernel[(1,)](x, x, x, 8, BLOCK=16)
        assert x.tolist() == [0, 2, 4, 6, 8, 10, 12, 14]
    assert len(sim.launches) == 1 and sim.verified and not sim.notes


def test_what_was_launched_before_an_error_is_not_confirmed() -> None:
    """The error ended its run; that of the launches behind it says nothing of it."""
    x = np.arange(8, dtype=np.float32)
    with kb.triton("tiny") as sim:
        kernel = add_of_vectors()
        for n in (8, 8, 9, 8):
            with suppress(kb.KernbenchError):
                kernel[(1,)](x, x, x, n, BLOCK=16)
    assert len(sim.launches) == 3 and sim.verified is None
    assert sim.notes == ["What 2 launches before an error wrote was not confirmed, as the error ended their run."]


def test_outside_of_runs_and_kernels_it_is_said_what_is_missing() -> None:
    """A launch without a machine, a kernel called as a function, the language outside of a kernel."""
    with kb.triton("tiny"):
        import triton.language as tl

        kernel = add_of_vectors()
        here = sys._getframe().f_lineno + 1
        assert refused(lambda: tl.load(1)) == (
            f"tl.load at {__file__}:{here} must be called in a kernel that runs; launch the kernel with "
            "kernel[grid](…)."
        )
        assert refused(lambda: kernel(1, 2, 3, 4, BLOCK=2)) == (
            "kernel 'add_kernel' must be launched with a grid, not called; write add_kernel[grid](…)."
        )
        assert refused(kb.triton("tiny").__enter__) == (
            "kb.triton must not be nested; end the open 'with' first."
        )
    assert refused(lambda: kernel[(1,)](1, 2, 3, 4, BLOCK=2)) == (
        "kernel 'add_kernel' must be called inside 'with kb.triton(topology):', or in a script that 'kernbench triton' "
        "runs; there is no machine to launch it on. In a file that is imported, launch below if __name__ == '__main__'."
    )


def test_threads_launch_nothing() -> None:
    """The run goes on in the thread that began it: another one is told so, and changes nothing of it."""
    x = np.ones(8, np.float32)
    said: list[str] = []

    def launch() -> None:
        said.append(refused(lambda: kernel[(1,)](x, x, x, 8, BLOCK=8)))

    with kb.triton("tiny") as sim:
        kernel = add_of_vectors()
        for launches in (0, 1):
            thread = Thread(target=launch, name="second")
            thread.start()
            thread.join()
            assert len(sim.launches) == launches
            kernel[(1,)](x, x, x, 8, BLOCK=8)
    assert said == 2 * [
        "kernel 'add_kernel' must be called in the thread that entered kb.triton, or that the script began in, not in "
        "thread 'second'; launch there, one kernel after the other."
    ]
    assert x.tolist() == [4] * 8 and sim.verified


def test_kernels_launch_nothing() -> None:
    """A kernel with a grid in a kernel is told of with its line, under a wrapper too; without one it is called."""
    x = np.ones(8, np.float32)
    with kb.triton("tiny"):
        import triton

        for inner in (add_of_vectors(), triton.autotune([triton.Config({"BLOCK": 8})], [])(add_of_vectors())):

            @triton.jit  # type: ignore[untyped-decorator]
            def outer(x: Any) -> None:
                inner[(1,)](x, x, x, 8)  # noqa: B023 - launched at once

            line = sys._getframe().f_lineno - 2
            said, place = refused(lambda: outer[(1,)](x)).split("\n")
            assert said == (
                "kernel 'add_kernel' must be launched by the host, not in a kernel; write add_kernel(…), without a "
                "grid, to call it there."
            )
            assert place.startswith(f"  at {__file__}:{line}, in kernel 'outer', program (0, 0, 0), on ")
    assert x.tolist() == [1] * 8


def test_what_the_callers_code_raises_is_its_own() -> None:
    """The run that was held open is given up."""
    x = np.ones(8, np.float32)
    with pytest.raises(ZeroDivisionError), kb.triton("tiny") as sim:
        add_of_vectors()[(1,)](x, x, x, 8, BLOCK=8)
        _ = 1 / 0
    assert sim.result is None
    with kb.triton("tiny"):
        add_of_vectors()[(1,)](x, x, x, 8, BLOCK=8)
    assert x.tolist() == [4] * 8


def test_hints_are_told_of_once() -> None:
    """Those of launches by launch, those of loops by loop; a launch without any adds nothing."""
    with kb.triton("tiny", pipeline_loops=False) as sim:
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, n: Any) -> None:
            for at in tl.range(tl.program_id(0), n, tl.num_programs(0), num_stages=3):
                tl.store(x_ptr + at, tl.load(x_ptr + at) * 2)

        x = np.arange(3, dtype=np.float32)
        for hints in ({"num_warps": 8, "num_stages": 2}, {"num_warps": 4}, {}):
            kernel[(2,)](x, 3, **hints)
    assert x.tolist() == [0, 8, 16] and sim.result is not None
    told = [(each.sentence, each.count) for each in sim.result.not_modelled if each.component == "the kernel"]
    ends = "is a hint to Triton's compiler, and changes nothing."
    assert sorted(told) == [
        (f"num_stages of a launch {ends}", 1),
        (f"num_stages of tl.range {ends}", 6),
        (f"num_warps of a launch {ends}", 2),
    ]


@pytest.mark.parametrize("ahead", [True, False])
def test_a_loop_is_told_only_what_triton_knows(ahead: bool) -> None:
    """All hints of its `tl.range`; a slip for one is refused, with the nearest."""
    x = np.ones(4, np.float32)
    with kb.triton("tiny", pipeline_loops=ahead):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, SLIP: tl.constexpr) -> None:  # noqa: N803 - as kernels are written
            for at in tl.range(
                0, 4, num_stages=2, loop_unroll_factor=2, disallow_acc_multi_buffer=True, flatten=True,
                warp_specialize=False, disable_licm=True,
            ):  # fmt: skip
                tl.store(x_ptr + at, 2.0)
            if SLIP:
                for at in tl.range(0, 4, num_stage=2):
                    tl.store(x_ptr + at, 3.0)

        kernel[(1,)](x, False)
        line = kernel.fn.__code__.co_firstlineno + 8
        assert refused(lambda: kernel[(1,)](x, True)).splitlines()[0] == (
            f"tl.range at {__file__}:{line} must be given bounds, a step and hints of Triton's, not 'num_stage'; "
            "correct the name. Did you mean 'num_stages'?"
        )
    assert x.tolist() == [2.0] * 4


def test_nothing_is_taken_from_the_cache() -> None:
    with pytest.raises(kb.UsageError) as caught:
        kb.triton("tiny", cached=True)
    assert str(caught.value) == (
        "kb.triton cannot cache its caller's own code between launches; leave out cached=True, or put the code into a "
        "file for 'kernbench triton --cached'."
    )
