"""Ranks, groups, order and time: programs of ranks side by side in one simulation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import kernbench_ccl.distributed as dist
import kernbench_core as kb
from kernbench_core.errors import KernelError, UsageError
from kernbench_core.host.host_program import POLL_NS
from kernbench_core.plugins import Plugins, load_plugins
from tests.ccl.ranks import PLUGINS, data, refused, run, started


def test_groups_have_their_own_order_and_calls() -> None:
    """Roots are ranks of the world, or places with group_…; two groups work side by side."""
    each = [data(rank, 40) for rank in range(5)]

    @started
    def program(rank: int, rt: Any) -> tuple[int, ...]:
        odd, even = dist.new_group([3, 1], sort_ranks=False), dist.new_group([4, 0, 2])
        mine, ranks = (odd, [3, 1]) if rank % 2 else (even, [0, 2, 4])
        x = rt.tensor(each[rank])
        dist.all_reduce(x, group=mine)
        rt.check(x, np.sum([each[r] for r in ranks], axis=0))
        y = rt.tensor(each[rank])
        dist.broadcast(y, src=ranks[1], group=mine)
        dist.broadcast(y, group_src=1, group=mine)
        rt.check(y, each[ranks[1]])
        z = rt.empty((40 * len(ranks),))
        dist.all_gather_into_tensor(z, rt.tensor(each[rank]), group=mine)
        rt.check(z, np.concatenate([each[r] for r in ranks]))
        assert dist.get_process_group_ranks(mine) == ranks
        assert [dist.get_global_rank(mine, i) for i in range(mine.size())] == ranks
        assert dist.get_group_rank(mine, rank) == mine.rank() == ranks.index(rank)
        return dist.get_rank(odd), dist.get_rank(even), dist.get_world_size(odd), dist.get_world_size(even)

    assert run(program, 5)[1] == [(-1, 0, -1, 3), (1, -1, 2, -1), (-1, 1, -1, 3), (0, -1, 2, -1), (-1, 2, -1, 3)]


def test_what_a_rank_is_told() -> None:
    """Rank, world size, state; values come back in rank order; the rest of the machine is not a rank."""

    def program(rank: int, rt: Any, add: int) -> tuple[Any, ...]:
        before = dist.is_initialized()
        dist.init_process_group("kernbench", world_size=2, rank=rank)
        told = dist.get_rank(), dist.get_world_size(), dist.is_initialized(), dist.get_backend()
        rt.zeros((4,))
        dist.destroy_process_group()
        return before, *told, dist.is_initialized(), rt.mesh, {site.sip for site in rt.pes}, add

    assert run(program, 2, 40, sips=3)[1] == [
        (False, rank, 2, True, "kernbench", False, (1, 1, 4), {rank}, 40) for rank in range(2)
    ]


def test_async_work_overlaps_with_a_launch_on_other_pes() -> None:
    """The call comes back at once; wait() waits; compute on PEs that move no data runs meanwhile."""
    count = 1 << 15

    def busy(x_ptr: Any, tl: Any) -> None:
        x = tl.load(x_ptr, shape=(2048,))
        for _ in range(60):
            x = x * 1.0
        tl.store(x_ptr, x)

    def program(rank: int, rt: Any) -> tuple[float, ...]:
        dist.init_process_group(pes=[2, 3])
        x, y = rt.tensor(np.ones(count, np.float32)), rt.tensor(np.ones(2048, np.float32))
        dist.all_reduce(x)
        dist.barrier()
        begun = rt.now
        dist.all_reduce(x)
        alone = rt.now - begun
        dist.barrier()
        begun = rt.now
        rt.launch(busy, y, pes=[0])
        computing = rt.now - begun
        dist.barrier()
        begun = rt.now
        work = dist.all_reduce(x, async_op=True)
        assert work is not None and not work.is_completed() and rt.now == begun + POLL_NS
        rt.launch(busy, y, pes=[0])
        work.wait()
        assert work.is_completed()
        rt.check(x, np.full(count, 8.0))
        return alone, computing, rt.now - begun

    for alone, computing, both in run(program, 2)[1]:
        assert max(alone, computing) <= both < 0.8 * (alone + computing)


def test_a_rank_may_poll_until_its_call_is_over() -> None:
    """torch's idiom ends when wait() does; then tensors and lists hold what they must."""

    @started
    def program(rank: int, rt: Any, polls: bool) -> list[float]:
        x = rt.tensor(np.full(400, rank + 1, np.float32))
        parts = [rt.empty((400,)) for _ in range(3)]
        ends = []
        for work in (dist.all_gather(parts, x, async_op=True), dist.all_reduce(x, async_op=True)):
            assert work is not None
            while polls and not work.is_completed():
                pass
            assert work.wait() and work.is_completed()
            ends.append(rt.now)
        rt.check(x, np.full(400, 6.0))
        for other, part in enumerate(parts):
            rt.check(part, np.full(400, other + 1))
        return ends

    assert run(program, 3, False)[1] == run(program, 3, True)[1]


def test_a_collective_waits_for_the_launches_that_its_tensor_was_given_to() -> None:
    """As kernels and collectives of one stream follow each other in torch."""

    def fill(x_ptr: Any, n: int, tl: Any) -> None:
        tl.store(x_ptr + tl.program_id(0) * n, tl.zeros((n,), "f32") + 2.0)

    @started
    def program(rank: int, rt: Any) -> None:
        x = rt.empty((400,))
        rt.launch(fill, x, 100, wait=False)
        dist.all_reduce(x)
        rt.check(x, np.full(400, 6.0))

    run(program)


def test_work_in_flight_at_the_end_of_a_program_is_waited_for() -> None:
    """What the bench does after spawn comes after all of it."""
    seen: list[Any] = []

    @started
    def program(rank: int, rt: Any) -> Any:
        x = rt.tensor(np.full(1000, rank + 1.0, np.float32), name="x")
        dist.all_reduce(x, async_op=True)
        return x

    def bench(rt: Any) -> None:
        for x in dist.spawn(program):
            seen.append(x.numpy())
            rt.check(x, np.full(1000, 3.0))

    result = kb.run(bench, "tiny", set=["system.sips=2"], verify_data=True, plugins=PLUGINS)
    assert result.verification is not None and result.verification.ok
    assert all(math.isclose(x.min(), 3) and math.isclose(x.max(), 3) for x in seen) and len(seen) == 2


def test_a_barrier_waits_for_the_last_rank() -> None:
    """Nobody leaves before everybody has come."""

    @started
    def program(rank: int, rt: Any) -> tuple[float, float]:
        for _ in range(rank):
            rt.zeros((1 << 16,))
        came = rt.now
        dist.barrier()
        return came, rt.now

    times = run(program)[1]
    assert max(came for came, _ in times) < min(left for _, left in times)


def test_same_program_same_log() -> None:
    """Ranks side by side are as deterministic as one program."""

    @started
    def program(rank: int, rt: Any) -> None:
        x = rt.tensor((500,), "f32")
        dist.all_reduce(x)
        if rank:
            dist.send(x, 0)
        else:
            dist.recv(x, 1), dist.recv(x, 2)

    hashes = {run(program)[0].op_log_sha256 for _ in range(2)}
    assert len(hashes) == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"backend": "cuda"},
         "dist.init_process_group: backend must be left out, 'kernbench', or one of torch's (nccl, gloo, mpi, ucc, "
         "xccl), which are taken for it, not 'cuda'; leave it out."),
        ({"init_method": "env://"},
         "dist.init_process_group: init_method must be left out: dist.spawn has started the ranks already."),
        ({"world_size": 8},
         "dist.init_process_group: world_size must be left out or 2, as dist.spawn has it, not 8."),
        ({"pes": [9]},
         "dist.init_process_group: pes must be different positions among the 4 PEs, from 0 to 3, not (9,); name at "
         "least one."),
        ({"pes": 4},
         "dist.init_process_group: pes must be different positions among the 4 PEs, from 0 to 3, not (4,); name at "
         "least one."),
    ],
)  # fmt: skip
def test_wrong_initialisation(given: dict[str, Any], said: str) -> None:
    """What torch needs to find other processes is not there."""
    assert refused(lambda rank, rt: dist.init_process_group(**given)) == said


def test_all_ranks_must_configure_alike() -> None:
    """Another file or other PEs on one rank is an error, not a deadlock."""
    assert refused(lambda rank, rt: dist.init_process_group(pes=[rank])) == (
        "dist.init_process_group: config, set and pes must be the same on all ranks, and rank 1 gives others than the "
        "first."
    )


def test_who_may_call() -> None:
    """The bench, a kernel, and code outside a run are told where to call."""

    def inside(tl: Any) -> None:
        dist.get_rank()

    def in_kernel(rt: Any) -> None:
        rt.launch(inside)

    outside = (
        "dist.get_rank must be called by the program of a rank, which dist.spawn starts; call dist.spawn(fn) in the "
        "bench."
    )
    with pytest.raises(UsageError) as caught:
        dist.get_rank()
    assert str(caught.value) == outside
    with pytest.raises(UsageError) as caught:
        kb.run(lambda rt: dist.get_rank(), "tiny", plugins=PLUGINS)
    assert str(caught.value).splitlines()[0] == outside
    with pytest.raises(KernelError) as raised:
        kb.run(in_kernel, "tiny", plugins=PLUGINS)
    assert str(raised.value).splitlines()[0] == (
        "dist.get_rank must be called by the host program of a rank, not in a kernel; use tl.send there."
    )
    with pytest.raises(UsageError) as caught:
        dist.spawn(print)
    assert str(caught.value) == (
        "dist.spawn must be called by a bench while it runs; call it in the bench."
    )


def test_the_number_of_ranks_is_at_most_that_of_sips() -> None:
    """A topology with more SIPs is asked for."""
    with pytest.raises(UsageError) as caught:
        kb.run(lambda rt: dist.spawn(print, 3), "tiny", plugins=PLUGINS)
    assert str(caught.value).splitlines()[0] == (
        "dist.spawn: nprocs must be a number of ranks from 1 to 1, one for each SIP of the device, not 3; choose a "
        "topology with more SIPs, or leave it out."
    )


def _yields(rank: int, rt: Any) -> Any:
    yield rt


@pytest.mark.parametrize(
    ("fn", "args", "said"),
    [
        (3, (), "dist.spawn: fn must be a function fn(rank, rt, …), not 3."),
        (_yields, (),
         "dist.spawn: fn must be a plain function, with neither yield nor async: it would never run."),
        (lambda rank: None, (),
         "dist.spawn: fn must be one to call as fn(rank, rt, *args): too many positional arguments."),
        (lambda rank, rt, x, y: None, (1,),
         "dist.spawn: fn must be one to call as fn(rank, rt, *args): missing a required argument: 'y'."),
    ],
)  # fmt: skip
def test_what_ranks_cannot_run_is_refused_before_they_start(fn: Any, args: tuple[Any, ...], said: str) -> None:
    """It is the call of the bench that is wrong."""
    with pytest.raises(UsageError) as caught:
        kb.run(lambda rt: dist.spawn(fn, args=args), "tiny", plugins=PLUGINS)
    assert str(caught.value).splitlines()[0] == said


def test_an_error_in_one_rank_names_it() -> None:
    """Other ranks are ended too, their finally blocks run."""
    ended: list[int] = []

    @started
    def program(rank: int, rt: Any) -> None:
        x = rt.zeros((4,))
        try:
            if rank == 1:
                raise ValueError("my fault")
            dist.all_reduce(x)
        finally:
            ended.append(rank)

    said = refused(program, 3)
    assert said.startswith("rank 1 raised ValueError: my fault at simulated time ")
    assert sorted(ended) == [0, 1, 2]


@pytest.mark.parametrize("waits", [True, False])
def test_what_comes_after_a_collective_is_ordered_by_waiting_for_it(waits: bool) -> None:
    """Using the tensor of an asynchronous call before wait() is a hazard, as it is a race in torch."""

    def touch(x_ptr: Any, n: int, tl: Any) -> None:
        tl.store(x_ptr + n, tl.load(x_ptr + n, shape=(n,)) + 1.0)

    def program(rank: int, rt: Any) -> None:
        dist.init_process_group(pes=[2, 3])
        x = rt.tensor(np.ones(1 << 14, np.float32))
        work = dist.all_reduce(x, async_op=True)
        if waits:
            work.wait()  # type: ignore[union-attr]
        rt.launch(touch, x, 1 << 13, pes=[0])

    result = kb.run(lambda rt: dist.spawn(program), "tiny", set=["system.sips=2"], plugins=PLUGINS)
    assert bool(result.hazards) is not waits


@pytest.mark.parametrize("plugins", [PLUGINS, load_plugins()])
@pytest.mark.parametrize("barrier", [True, False])
def test_a_barrier_orders_what_ranks_do(barrier: bool, plugins: Plugins) -> None:
    """What a rank wrote before it is there after it, for every other rank; without it the two race."""

    def write(x_ptr: Any, tl: Any) -> None:
        tl.store(x_ptr, tl.zeros((64,), "f32"))

    def program(rank: int, rt: Any, x: Any) -> None:
        dist.init_process_group()
        if rank == 0:
            rt.launch(write, x, pes=[1])
        if barrier:
            dist.barrier()
        if rank == 2:
            rt.launch(write, x, pes=[2])

    def bench(rt: Any) -> None:
        dist.spawn(program, args=(rt.zeros((64,), device=0),))

    result = kb.run(bench, "tiny", set=["system.sips=3"], plugins=plugins)
    assert bool(result.hazards) is not barrier
