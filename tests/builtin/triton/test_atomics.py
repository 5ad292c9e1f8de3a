"""Atomic ops: whatever order programs and lanes take turns in, nothing is lost; held against numpy and loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernbench as kb

# mypy: disable-error-code="import-not-found"

HOWS = {
    "add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip


@pytest.mark.parametrize("how", HOWS)
def test_programs_change_the_same_elements(how: str) -> None:
    """Eight programs, lanes that meet in an element, and a mask; no hazard, and every op is confirmed."""
    rng = np.random.default_rng(1)
    x, at = rng.integers(0, 99, 60).astype(np.int32), rng.integers(0, 5, 60).astype(np.int32)
    out = rng.integers(0, 99, 5).astype(np.int32)
    expected = out.copy()
    HOWS[how].at(expected, at, x)
    with kb.triton("tiny", verify_ops=True, placement="blocks") as sim:
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, at_ptr: Any, out_ptr: Any, n: Any, B: tl.constexpr) -> None:  # noqa: N803
            i = tl.program_id(0) * B + tl.arange(0, B)
            values, places = tl.load(x_ptr + i, mask=i < n), tl.load(at_ptr + i, mask=i < n)
            getattr(tl, f"atomic_{how}")(out_ptr + places, values, mask=i < n)

        kernel[(8,)](x, at, out, 60, B=8)
    assert out.tolist() == expected.tolist()
    assert sim.result is not None
    assert sim.result.hazards == ()
    assert sim.result.op_log is not None
    names = [record.op_name for record in sim.result.op_log]
    assert 8 < names.count(f"atomic_{how}") <= 8 * 4, "a command for each of the memories that a block touches"
    assert names.count("dma_read") == 16
    assert "atomic_before" not in names, "what nobody uses is not brought back"


def test_what_was_there_before_comes_back() -> None:
    """Tickets of a counter are each given once; within a block, lanes that meet in an element take turns."""
    counter, tickets, found = np.zeros(1, np.int32), np.full(16, -1, np.int32), np.zeros(4, np.float32)
    sums = np.array([10, 20], np.float32)
    with kb.triton("tiny", verify_ops=True):
        import triton
        import triton.language as tl

        @triton.jit
        def draw(counter_ptr: Any, tickets_ptr: Any) -> None:
            mine = tl.atomic_add(counter_ptr, 1)
            tl.store(tickets_ptr + tl.program_id(0), mine)

        @triton.jit
        def add(sums_ptr: Any, found_ptr: Any) -> None:
            i = tl.arange(0, 4)
            before = tl.atomic_add(sums_ptr + i % 2, i.to(tl.float32), sem="relaxed")
            tl.store(found_ptr + i, before)

        draw[(16,)](counter, tickets)
        add[(1,)](sums, found)
    assert counter.tolist() == [16]
    assert sorted(tickets.tolist()) == list(range(16))
    assert sums.tolist() == [12, 24]
    assert found.tolist() == [10, 20, 10, 21]


def test_exchange_and_compare() -> None:
    """One of the programs finds the lock open; the last to exchange is what stays."""
    lock, won, last = np.zeros(1, np.int32), np.zeros(8, np.int32), np.full(1, 99, np.int32)
    with kb.triton("tiny", verify_ops=True):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(lock_ptr: Any, won_ptr: Any, last_ptr: Any) -> None:
            pid = tl.program_id(0)
            if tl.atomic_cas(lock_ptr, 0, pid + 1) == 0:
                tl.store(won_ptr + pid, 1)
            tl.atomic_xchg(last_ptr, pid)

        kernel[(8,)](lock, won, last)
    assert won.sum() == 1
    assert won[lock[0] - 1] == 1
    assert 0 <= last[0] < 8


def test_a_plain_load_beside_an_atomic_op_is_a_hazard() -> None:
    """Of programs that nothing orders."""
    x = np.zeros(1, np.int32)
    with kb.triton("tiny") as sim:
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any) -> None:
            if tl.program_id(0) == 0:
                tl.load(x_ptr)
            else:
                tl.atomic_add(x_ptr, 1)

        kernel[(2,)](x)
    assert sim.result is not None
    assert len(sim.result.hazards) == 1


@pytest.mark.parametrize(
    ("do", "told"),
    [
        (
            lambda tl, p: tl.atomic_xor(p, 1),
            "tl.atomic_xor at HERE must be given pointers to integers, not f32; cast them.",
        ),
        (
            lambda tl, p: tl.atomic_add(3, 1),
            "tl.atomic_add at HERE must be given pointers, not int 3; pass a tensor to the launch.",
        ),
        (
            lambda tl, p: tl.atomic_add(tl.arange(0, 4), 1),
            "tl.atomic_add at HERE must be given pointers, not index arithmetic; pass a tensor to the launch.",
        ),
        (
            lambda tl, p: p == tl.arange(0, 4),
            "a comparison with a pointer at HERE must be of another pointer, not index arithmetic; tl.load what it "
            "points to, or ask for None by 'is None'.",
        ),
    ],
)
def test_what_does_not_fit_is_a_sentence(do: Any, told: str) -> None:
    """With the line in the kernel."""
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any) -> None:
            do(tl, x_ptr)

        with pytest.raises(kb.KernbenchError) as error:
            kernel[(1,)](np.ones(1, np.float32))
    assert str(error.value).startswith(told.replace("HERE", f"{__file__}:{do.__code__.co_firstlineno}")), error.value
