"""Rows of a tensor as a part of it: what takes it, and what says why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_core.errors import KernelError, UsageError
from kernbench_core.memory.placement import Interleave, Shard
from tests.core.working_machine import on_machine

ROWS = np.arange(32, dtype=np.float32).reshape(8, 4)


def ran(bench: Callable[[Any], object]) -> Any:
    """Run a bench on one small SIP and give what it returns."""
    found: list[Any] = []
    kb.run(lambda rt: found.append(bench(rt)), **on_machine())
    return found[0]


def said(bench: Callable[[Any], object]) -> str:
    """Return the first line of the error that a bench ends with."""
    with pytest.raises((UsageError, KernelError)) as caught:
        ran(bench)
    return str(caught.value).splitlines()[0]


@pytest.mark.parametrize("placement", [None, Shard(0), Shard(1), Interleave(64)])
@pytest.mark.parametrize("rows", [slice(None), slice(2, 5), slice(-3, None), slice(6, 99), slice(np.int64(1), None)])
def test_a_part_reads_as_numpy_slices(placement: Any, rows: slice) -> None:
    """Whatever the placement, and through a part of a part."""

    def bench(rt: Any) -> None:
        x = rt.tensor(ROWS, name="x", placement=placement)
        part, inner = x[rows], x[1:][rows]
        np.testing.assert_array_equal(part.numpy(), ROWS[rows])
        np.testing.assert_array_equal(inner.numpy(), ROWS[1:][rows])
        assert (part.shape, part.dtype, part.nbytes) == (ROWS[rows].shape, "f32", ROWS[rows].nbytes)

    ran(bench)


def test_only_the_part_must_have_been_written() -> None:
    """The other rows may be open."""

    def write(x_ptr: Any, tl: Any) -> None:
        if tl.program_id(0) == 0:
            tl.store(x_ptr + 16, tl.full((8,), 3.0, "f32"))

    def bench(rt: Any) -> Any:
        x = rt.empty((8, 4), name="x")
        rt.launch(write, x, wait=False)
        return x[4:6].numpy().tolist()

    assert ran(bench) == [[3.0] * 4] * 2
    assert said(lambda rt: rt.empty((8, 4), name="x")[4:6].numpy()) == (
        "tensor 'x[4:6]' must be written before the host reads it, and element [4, 0] of 'x' was not; store to it "
        "in a kernel, or make it with rt.zeros."
    )


@pytest.mark.parametrize(
    ("key", "shown"),
    [(3, "3"), (slice(0, 4, 2), "0:4:2"), (slice(4, 4), "4:4"), (slice(None, None, -1), "::-1"),
     ((slice(0, 2), slice(0, 1)), "(slice(0, 2, None), slice(0, 1, None))"), (slice(1.5, 2), "1.5:2"),
     (None, "None")],
)  # fmt: skip
def test_other_indices_are_refused(key: Any, shown: str) -> None:
    """One sentence, for a tensor and for a part of it."""
    for name, index in (("x", lambda x: x[key]), ("x[0:8]", lambda x: x[0:8][key])):
        assert said(lambda rt: index(rt.tensor(ROWS, name="x"))) == (  # noqa: B023 - called at once
            f"tensor {name!r} of shape [8, 4] must be indexed by a slice of at least one row, as in [0:1], not by "
            f"[{shown}]; read elements from numpy()."
        )


@pytest.mark.parametrize(
    "use",
    [
        lambda rt, part: rt.launch(lambda x_ptr, tl: None, part),
        lambda rt, part: rt.launch(lambda x_ptrs, tl: None, {"x": [part]}),
        lambda rt, part: rt.check(part, ROWS[2:4]),
        lambda rt, part: rt.free(part),
        lambda rt, part: rt.copy_to_host(part),
        lambda rt, part: part.to_local(),
        lambda rt, part: part.value(),
    ],
)
def test_what_takes_no_part_says_so(use: Callable[[Any, Any], object]) -> None:
    """And what to give in its place."""
    assert said(lambda rt: use(rt, rt.tensor(ROWS, name="x")[2:4])) == (
        "x[2:4] is a part of tensor 'x': only numpy() and dist calls accept parts; give the whole tensor, and add 8 to "
        "its pointer in the kernel."
    )


def test_what_is_to_be_finished_before_a_use_is_finished_once() -> None:
    """By reading, by launching, by checking; looking at shape, name and size is no use."""

    def bench(rt: Any) -> list[int]:
        done: list[int] = []
        uses: list[Callable[[Any], object]] = [
            lambda x: x.numpy(), lambda x: x[1:2].numpy(), lambda x: rt.check(x, ROWS),
            lambda x: rt.launch(lambda x_ptr, tl: None, x), lambda x: rt.copy_to_host(x), lambda x: rt.free(x),
        ]  # fmt: skip
        for number, use in enumerate(uses):
            x = rt.tensor(ROWS, name="x")
            x.before_use(lambda number=number: done.append(number))
            repr(x), x.shape, x.nbytes, x.placement, x.replicas, x.name
            assert len(done) == number
            use(x)
        return done

    assert ran(bench) == [0, 1, 2, 3, 4, 5]
