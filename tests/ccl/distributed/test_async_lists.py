"""The forms that take lists, asynchronous: whoever uses a result sees it, waited for or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernbench_ccl.distributed as dist
import kernbench_core as kb
from kernbench_core.errors import UsageError
from tests.ccl.ranks import PLUGINS, data, run, started

COUNT = 3000
EACH = [data(rank, COUNT) for rank in range(2)]


def gathered(rank: int, rt: Any, form: str) -> tuple[Any, list[Any], list[Any]]:
    """Call one form without waiting; give its Work, its results and what these must be."""
    x, out = rt.tensor(EACH[rank]), [rt.zeros((COUNT,), name=f"o{i}") for i in range(2)]
    if form == "all_gather":
        return dist.all_gather(out, x, async_op=True), out, EACH
    if form == "gather":
        work = dist.gather(x, out if rank == 0 else None, dst=0, async_op=True)
        return (work, out, EACH) if rank == 0 else (work, [], [])
    parts = [rt.tensor(EACH[rank] + other) for other in range(2)]
    return dist.all_to_all(out, parts, async_op=True), out, [EACH[other] + rank for other in range(2)]


def add_one(x_ptr: Any, n: int, tl: Any) -> None:
    """Add 1 to this PE's share."""
    at = x_ptr + tl.program_id(0) * n
    tl.store(at, tl.load(at, shape=(n,)) + 1.0)


@pytest.mark.parametrize("form", ["all_gather", "gather", "all_to_all"])
def test_a_use_of_a_result_waits_for_it(form: str) -> None:
    """Reading, checking, launching on it, reading rows of it, another collective."""

    @started
    def program(rank: int, rt: Any, use: str) -> None:
        work, out, right = gathered(rank, rt, form)
        for one, expected in zip(out[1:], right[1:], strict=True):
            if use == "numpy":
                np.testing.assert_array_equal(one.numpy(), expected)
            elif use == "rows":
                np.testing.assert_array_equal(one[5:9].numpy(), expected[5:9])
            elif use == "check":
                rt.check(one, expected)
            elif use == "launch":
                rt.launch(add_one, one, COUNT // rt.n_pes)
                rt.check(one, expected + 1)
            else:
                dist.broadcast(one, rank, group=alone[rank])
                rt.check(one, expected)
            assert work.is_completed() and work.wait()
        work.wait()

    alone: list[Any] = []

    @started
    def with_groups(rank: int, rt: Any) -> None:
        made = [dist.new_group([0]), dist.new_group([1])]
        alone[:] = made
        program.__wrapped__(rank, rt, "collective")  # type: ignore[attr-defined]

    for use in ("numpy", "rows", "check", "launch"):
        run(program, 2, use)
    run(with_groups, 2)


@pytest.mark.parametrize("form", ["all_gather", "gather", "scatter", "reduce_scatter", "all_to_all"])
def test_copies_run_on_the_pes_of_the_group(form: str) -> None:
    """The others are free for kernels meanwhile."""

    def program(rank: int, rt: Any) -> None:
        dist.init_process_group(pes=[1, 3])
        group = dist.new_group([1, 0], sort_ranks=False)
        x, lists = rt.tensor(EACH[rank]), [[rt.zeros((COUNT,)) for _ in range(2)] for _ in range(2)]
        if form == "all_to_all":
            dist.all_to_all(*lists, group=group)
        elif form in ("gather", "scatter"):
            getattr(dist, form)(x, lists[0] if rank == 1 else None, 1, group=group)
        else:
            getattr(dist, form)(*((lists[0], x) if form == "all_gather" else (x, lists[0])), group=group)

    result = kb.run(lambda rt: dist.spawn(program), "tiny", set=["system.sips=2"], plugins=PLUGINS)
    copies = [one for one in result.launches if one.kernel in ("join_parts", "part_whole")]
    assert len(copies) == {"gather": 1, "scatter": 1, "all_to_all": 4}.get(form, 2)
    busy = {op.component_id.split(".")[2] for op in result.op_log if ".pe" in op.component_id}
    assert busy == {"pe1", "pe3"}


@pytest.mark.parametrize("form", ["all_gather", "gather", "all_to_all"])
def test_what_is_never_waited_for_is_there_after_the_spawn(form: str) -> None:
    """The program of a rank ends when its results are copied."""
    seen: list[Any] = []

    def bench(rt: Any) -> None:
        for _, out, right in dist.spawn(started(lambda rank, rt: gathered(rank, rt, form))):
            for one, expected in zip(out, right, strict=True):
                np.testing.assert_array_equal(one.numpy(), expected)
                rt.check(one, expected)
                seen.append(one)

    result = kb.run(bench, "tiny", set=["system.sips=2"], plugins=PLUGINS, verify_data=True)
    assert result.verification is not None and result.verification.ok and not result.hazards
    assert len(seen) == (2 if form == "gather" else 4)


def test_a_second_call_into_the_same_list_comes_after_the_first() -> None:
    """Each copies its own results."""

    @started
    def program(rank: int, rt: Any) -> None:
        out = [rt.zeros((COUNT,)) for _ in range(2)]
        for factor in (1, 2):
            dist.all_gather(out, rt.tensor(EACH[rank] * factor), async_op=True)
        rt.check(out[1], EACH[1] * 2)

    run(program, 2)


def test_another_program_is_told_who_must_wait() -> None:
    """A rank cannot finish what another rank has called."""
    shared: dict[int, Callable[[], Any]] = {}

    @started
    def program(rank: int, rt: Any) -> None:
        if rank == 0:
            out = [rt.zeros((COUNT,), name=f"o{i}") for i in range(2)]
            dist.all_gather(out, rt.tensor(EACH[0]), async_op=True)
            shared[0] = out[1].numpy
            dist.barrier(), rt.zeros((COUNT,)), rt.zeros((COUNT,))
        else:
            dist.all_gather([rt.zeros((COUNT,)) for _ in range(2)], rt.tensor(EACH[1]))
            dist.barrier()
            shared[0]()

    with pytest.raises(UsageError) as caught:
        run(program, 2)
    assert str(caught.value).splitlines()[0] == (
        "rank 0 must wait for tensor 'o1' before others use it, as dist.all_gather still has to copy its result "
        "there; call wait() of its Work first."
    )
