"""The API of torch.distributed on ranks that are SIPs: data, groups, asynchronous work, refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kernbench_ccl.distributed as dist
import kernbench_core as kb
from kernbench_core.dtypes import NAMES, numpy_dtype
from kernbench_core.errors import KernelError, UnsupportedError, UsageError
from tests.ccl.naive import plugins

PLUGINS = plugins()
Array = np.ndarray[Any, Any]


def run(
    program: Callable[..., Any], world: int = 3, *args: object, verify: bool = True, sips: int | None = None
) -> tuple[kb.RunResult, list[Any]]:
    """Run `program(rank, rt, *args)` on so many small SIPs, check the data and that nothing races."""
    values: list[Any] = []

    def bench(rt: Any) -> None:
        values.extend(dist.spawn(program, world, args))

    result = kb.run(
        bench, "tiny", set=[f"system.sips={sips or world}"], verify_data=verify, plugins=PLUGINS, max_sim_ns=1e6
    )
    if verify:
        assert result.verification is not None and result.verification.ok, result.verification
    assert not result.hazards
    return result, values


def refused(program: Callable[..., Any], world: int = 2) -> str:
    """Return the first line of what a run ends with that must not go well."""
    with pytest.raises((UsageError, KernelError)) as caught:
        run(program, world, verify=False)
    return str(caught.value).splitlines()[0]


def data(rank: int, count: int, dtype: str = "f32") -> Array:
    """Return small numbers that differ by rank and place, and whose sums are exact in every dtype."""
    generator = np.random.default_rng((rank, count))
    return generator.integers(0, 2, count).astype(numpy_dtype(dtype))


def started(program: Callable[..., Any]) -> Callable[..., Any]:
    """Join the group of all ranks, then run a program."""

    def joined(rank: int, rt: Any, *args: Any) -> Any:
        dist.init_process_group()
        return program(rank, rt, *args)

    return joined


# Data ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", [2, 3, 4, 5])
@pytest.mark.parametrize("count", [1, 37, 4100])
def test_every_collective_gives_what_numpy_gives(world: int, count: int) -> None:
    """Also for counts that no number of PEs or ranks divides."""
    root, each = world - 1, [data(rank, count * world) for rank in range(world)]
    mine = [x[:count] for x in each]
    total = np.sum(mine, axis=0)

    @started
    def program(rank: int, rt: Any) -> None:
        def tensor(array: Array) -> Any:
            return rt.tensor(array)

        x = tensor(mine[rank])
        dist.all_reduce(x)
        rt.check(x, total)
        x = tensor(mine[rank])
        dist.reduce(x, root)
        rt.check(x, total if rank == root else mine[rank])
        x = tensor(mine[rank])
        dist.broadcast(x, src=root)
        rt.check(x, mine[root])
        gathered, part = rt.empty((world, count)), rt.empty((count,))
        dist.all_gather_into_tensor(gathered, tensor(mine[rank]))
        rt.check(gathered, np.stack(mine))
        dist.reduce_scatter_tensor(part, tensor(each[rank]))
        rt.check(part, np.sum(each, axis=0).reshape(world, count)[rank])
        exchanged = rt.empty((world * count,))
        dist.all_to_all_single(exchanged, tensor(each[rank]))
        rt.check(exchanged, np.concatenate([x.reshape(world, count)[rank] for x in each]))

    run(program, world)


@pytest.mark.parametrize("world", [2, 5])
def test_the_list_forms_give_what_numpy_gives(world: int) -> None:
    """gather, scatter, all_gather, reduce_scatter and all_to_all with a tensor for each rank."""
    count, root = 37, 1
    each = [data(rank, count * world).reshape(world, count) for rank in range(world)]

    @started
    def program(rank: int, rt: Any) -> None:
        own, listed = rt.tensor(each[rank][0]), [rt.tensor(x) for x in each[rank]]
        gathered = [rt.empty((count,)) for _ in range(world)]
        dist.all_gather(gathered, own)
        for other, got in enumerate(gathered):
            rt.check(got, each[other][0])
        got = [rt.empty((count,)) for _ in range(world)] if rank == root else None
        dist.gather(own, got, dst=root)
        for other, one in enumerate(got or ()):
            rt.check(one, each[other][0])
        out = rt.empty((count,))
        dist.scatter(out, listed if rank == root else None, src=root)
        rt.check(out, each[root][rank])
        dist.reduce_scatter(out, listed)
        rt.check(out, np.sum(each, axis=0)[rank])
        dist.all_to_all(gathered, listed)
        for other, one in enumerate(gathered):
            rt.check(one, each[other][rank])

    run(program, world)


@pytest.mark.parametrize("dtype", NAMES)
def test_every_dtype_of_the_core_is_summed(dtype: str) -> None:
    """A sum of bools is "any", as in torch."""
    each = [data(rank, 50, dtype) for rank in range(3)]
    wide = np.sum([x.astype(np.float64) for x in each], axis=0)
    total = (wide > 0) if dtype == "bool" else wide.astype(numpy_dtype(dtype))

    @started
    def program(rank: int, rt: Any) -> None:
        x = rt.tensor(each[rank], dtype)
        dist.all_reduce(x)
        rt.check(x, total)

    run(program)


@pytest.mark.parametrize(
    ("op", "numpy"),
    [
        (dist.ReduceOp.SUM, np.add), (dist.ReduceOp.PRODUCT, np.multiply), (dist.ReduceOp.MIN, np.minimum),
        (dist.ReduceOp.MAX, np.maximum), (dist.ReduceOp.AVG, None),
    ],
)  # fmt: skip
def test_every_reduction(op: str, numpy: Any) -> None:
    """Small integers in f32, so that the result does not depend on the order; four ranks, so that AVG is exact."""
    each = [np.arange(33, dtype=np.float32) % (rank + 2) - rank for rank in range(4)]
    right = np.mean(each, axis=0, dtype=np.float32) if numpy is None else numpy.reduce(each)

    @started
    def program(rank: int, rt: Any) -> None:
        x = rt.tensor(each[rank])
        dist.all_reduce(x, op)
        rt.check(x, right, rtol=0, atol=0)

    run(program, 4)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(2, 4).flatmap(lambda n: st.lists(st.lists(st.integers(0, 5), min_size=n, max_size=n),
                                                    min_size=n, max_size=n)), st.integers(1, 3))  # fmt: skip
def test_uneven_splits(sizes: list[list[int]], row: int) -> None:
    """`sizes[i][j]` rows go from rank i to rank j; none at all is allowed, and so is room to spare."""
    world = len(sizes)
    sent = [data(rank, max(1, sum(sizes[rank])) * row).reshape(-1, row) for rank in range(world)]
    starts = [np.cumsum([0, *line]) for line in sizes]

    @started
    def program(rank: int, rt: Any) -> None:
        received = [line[rank] for line in sizes]
        rows = max(1, sum(received)) + 1
        y = rt.tensor(np.full((rows, row), 7, np.float32))
        dist.all_to_all_single(y, rt.tensor(sent[rank]), received, sizes[rank])
        got = [sent[i][starts[i][rank] : starts[i][rank + 1]] for i in range(world)]
        rest = np.full((rows - sum(received), row), 7)
        rt.check(y, np.concatenate([*got, rest]))

    run(program, world)


def test_a_tensor_of_rows_is_summed_where_it_lies() -> None:
    """Shapes and placements do not matter: a tensor is its elements in row-major order."""
    from kernbench_core.placement import Shard

    each = [data(rank, 64).reshape(4, 16) for rank in range(2)]

    @started
    def program(rank: int, rt: Any) -> None:
        x = rt.tensor(each[rank], placement=Shard(1))
        dist.all_reduce(x)
        rt.check(x, each[0] + each[1])

    run(program, 2)


# Messages -----------------------------------------------------------------------------------------------


def test_messages_arrive_in_the_order_of_their_sends() -> None:
    """recv gives the rank that sent; a rank may send and receive at once."""
    big = [data(rank, 30_000) for rank in range(2)]

    @started
    def program(rank: int, rt: Any) -> int:
        other = 1 - rank
        works = [dist.isend(rt.tensor(big[rank]), other), dist.isend(rt.tensor(big[rank][:5]), other)]
        x, y = rt.empty((30_000,)), rt.empty((5,))
        got = dist.recv(x, other)
        dist.irecv(y, other).wait()
        assert all(work.wait() for work in works)
        rt.check(x, big[other])
        rt.check(y, big[other][:5])
        return got

    assert run(program, 2)[1] == [1, 0]


def test_a_batch_of_messages() -> None:
    """Every rank gives its tensor to the next, at once."""
    each = [data(rank, 100) for rank in range(4)]

    @started
    def program(rank: int, rt: Any) -> None:
        out = rt.empty((100,))
        batch = [
            dist.P2POp(dist.isend, rt.tensor(each[rank]), (rank + 1) % 4), dist.P2POp(dist.irecv, out, (rank - 1) % 4)
        ]  # fmt: skip
        for work in dist.batch_isend_irecv(batch):
            work.wait()
        rt.check(out, each[(rank - 1) % 4])

    run(program, 4)


# Groups, order, time ------------------------------------------------------------------------------------


def test_groups_have_their_own_order_and_calls() -> None:
    """Roots are ranks of the world, or places with group_…; two groups work side by side."""
    each = [data(rank, 40) for rank in range(5)]

    @started
    def program(rank: int, rt: Any) -> tuple[int, ...]:
        odd, even = dist.new_group([3, 1]), dist.new_group([0, 2, 4])
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
        assert work is not None and not work.is_completed() and rt.now == begun
        rt.launch(busy, y, pes=[0])
        work.wait()
        assert work.is_completed()
        rt.check(x, np.full(count, 8.0))
        return alone, computing, rt.now - begun

    for alone, computing, both in run(program, 2)[1]:
        assert max(alone, computing) <= both < 0.8 * (alone + computing)


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


# Refusals -----------------------------------------------------------------------------------------------

#: torch.distributed's public names (2.x: distributed_c10d, and those that the package adds).
TORCH = """
Backend BackendConfig GroupMember P2POp all_gather all_gather_coalesced all_gather_object all_reduce
all_reduce_coalesced all_to_all all_to_all_single barrier batch_isend_irecv broadcast send_object_list recv_object_list
broadcast_object_list destroy_process_group gather gather_object get_backend_config get_backend get_rank get_world_size
get_pg_count group init_process_group irecv is_gloo_available is_initialized is_mpi_available is_backend_available
is_nccl_available is_torchelastic_launched is_ucc_available is_xccl_available isend monitored_barrier new_group
new_subgroups new_subgroups_by_enumeration recv reduce reduce_scatter scatter scatter_object_list send supports_complex
AllreduceCoalescedOptions AllreduceOptions AllToAllOptions BarrierOptions BroadcastOptions GatherOptions PrefixStore
ProcessGroup ReduceOp ReduceOptions ReduceScatterOptions ScatterOptions Store DebugLevel get_debug_level Work
default_pg_timeout get_group_rank get_global_rank get_process_group_ranks reduce_op all_gather_into_tensor
reduce_scatter_tensor get_node_local_rank split_group FileStore HashStore TCPStore is_available set_debug_level
set_debug_level_from_env init_device_mesh DeviceMesh breakpoint rendezvous register_rendezvous_handler
""".split()


def test_every_name_of_torch_is_there_or_refused() -> None:
    """Nothing of torch.distributed is an AttributeError; and what is refused is a name of torch."""
    for name in TORCH:
        if name in dist.__all__:
            assert getattr(dist, name) is not None
            continue
        with pytest.raises(UnsupportedError) as caught:
            getattr(dist, name)
        assert str(caught.value) == f"torch.distributed.{name} is not there in kernbench; {dist.REFUSED[name]}."
    assert set(dist.REFUSED) | (set(dist.__all__) - {"spawn"}) == set(TORCH)
    assert str(pytest.raises(AttributeError, getattr, dist, "all_redcue").value) == (
        "module 'kernbench_ccl.distributed' has no attribute 'all_redcue'"
    )


def test_other_reductions_are_refused_by_name() -> None:
    """What to do in their place is said."""
    for name in ("BAND", "BOR", "BXOR", "PREMUL_SUM"):
        with pytest.raises(UnsupportedError) as caught:
            getattr(dist.ReduceOp, name)
        told = {"PREMUL_SUM": "multiply in a kernel of your own, then use ReduceOp.SUM"}
        rest = told.get(name, "gather the tensors, and combine them in a kernel of your own")
        assert str(caught.value) == f"ReduceOp.{name} is not there in kernbench; {rest}."


X = "rt.tensor(np.ones(8, np.float32), name='x')"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("dist.all_reduce(3)", "dist.all_reduce: tensor must be a tensor that this rank's rt made, not 3."),
        (f"dist.all_reduce({X}, 'xor')",
         "dist.all_reduce: op: a reduction must be one of sum, avg, product, min, max, not 'xor'; choose one of these."),
        ("dist.all_reduce(rt.zeros((4,), 'int32'), dist.ReduceOp.AVG)",
         "dist.all_reduce: op: avg must be of a float dtype, not of int32, which cannot hold the quotient; use sum, or "
         "cast first."),
        ("dist.all_reduce(rt.zeros((4,), name='x', placement=kb.Replicate()))",
         "dist.all_reduce: tensor 'x' must be there once, not in 4 copies; place it with Shard, or without a "
         "placement."),
        (f"dist.all_reduce({X}, group=3)",
         "dist.all_reduce: group must be None or what dist.new_group returned in this dist.spawn, not 3."),
        (f"dist.all_reduce({X}, group=dist.new_group([1 - rank]))",
         "dist.all_reduce: rank 0 must be in the group 'group 1', which is of the ranks [1]; have only these call it."),
        (f"dist.all_gather_into_tensor(rt.empty((4,), name='y'), {X})",
         "dist.all_gather_into_tensor: output_tensor 'y' must have 16 elements, 8 for each of 2 ranks, not 4; correct "
         "its shape."),
        (f"dist.all_gather_into_tensor(rt.empty((16,), 'f16', name='y'), {X})",
         "dist.all_gather_into_tensor: output_tensor 'y' must have the dtype of input_tensor 'x', f32, not f16; cast "
         "one in a kernel."),
        (f"dist.reduce_scatter_tensor(rt.empty((3,)), {X})",
         "dist.reduce_scatter_tensor: input 'x' must have 6 elements, 3 for each of 2 ranks, not 8; correct its "
         "shape."),
        (f"dist.broadcast({X}, 2)",
         "dist.broadcast: src must be a rank of the group 'world', one of [0, 1], not 2."),
        (f"dist.broadcast({X})",
         "dist.broadcast: src must be a rank of the group 'world', one of [0, 1], not None."),
        (f"dist.reduce({X}, group_dst=-1)",
         "dist.reduce: group_dst must be a place in the group 'world', from 0 to 1, not -1."),
        (f"dist.reduce({X}, 0, group_dst=0)",
         "dist.reduce: dst and group_dst must not both be given; leave one out."),
        ("dist.all_to_all_single(rt.empty((3,)), rt.zeros((3,), name='x'))",
         "dist.all_to_all_single: input 'x' must have a number of elements that divides into 2 equal parts, not 3; pad "
         "it, or give input_split_sizes."),
        (f"dist.all_to_all_single(rt.empty((8,)), {X}, [4, 4], [4, 5])",
         "dist.all_to_all_single: input_split_sizes must sum to at most the 8 rows of input 'x', not to 9; correct "
         "them."),
        (f"dist.all_to_all_single(rt.empty((8,)), {X}, [8], None)",
         "dist.all_to_all_single: output_split_sizes must be 2 numbers of rows, one for each rank, not [8]."),
        (f"dist.all_gather([{X}], {X})",
         "dist.all_gather: tensor_list must be a list of 2 tensors, one for each rank, not 1."),
        (f"dist.gather({X}, [{X}, {X}], dst=1)",
         "dist.gather: gather_list must be given by rank 1 alone, not by rank 0; leave it out here."),
        (f"dist.send({X}, 0)",
         "dist.send: dst must be another rank than 0, which is the caller; copy in a kernel."),
        (f"dist.recv({X})",
         "dist.recv: src must be given: a message is to one rank, and from one; name it."),
        (f"dist.send({X}, 1, tag=4)",
         "dist.send: tag must be left out, not 4: messages arrive in the order of their sends."),
        ("dist.batch_isend_irecv([3])",
         "dist.batch_isend_irecv: each op must be a P2POp of dist.isend or dist.irecv, not 3."),
        ("dist.init_process_group()",
         "dist.init_process_group must be called once by each rank, and rank 0 has called it before."),
        ("dist.new_group([0, 2])",
         "dist.new_group: ranks must be different ranks from 0 to 1, not [0, 2]; name at least one."),
        ("dist.new_group(timeout=3)", "dist.new_group: timeout must be left out; settings are in ccl.yaml."),
        ("dist.barrier(device_ids=[0])", "dist.barrier: device_ids must be left out: every rank is one SIP."),
        ("dist.spawn(print)",
         "dist.spawn must be called by the bench, not by rank 0; ranks cannot start more ranks."),
        ("dist.destroy_process_group() or dist.get_rank()",
         "dist.get_rank must come after dist.init_process_group, and rank 0 has not called that; call it first."),
        ("parent.zeros((4,))",
         "rt.zeros must be called through the rt of rank 0, which calls it, not through that of bench 'bench'; use the "
         "rt that the program was given."),
    ],
)  # fmt: skip
def test_wrong_calls_are_one_sentence(call: str, said: str) -> None:
    """The first line is the sentence; the second names rank 0 and its line."""
    with pytest.raises((UsageError, KernelError)) as caught:

        def bench(rt: Any) -> None:
            parent = rt

            def program(rank: int, rt: Any) -> None:
                dist.init_process_group()
                if rank == 0:
                    eval(call, {"dist": dist, "rt": rt, "np": np, "kb": kb, "rank": rank, "parent": parent})

            dist.spawn(program)

        kb.run(bench, "tiny", set=["system.sips=2"], plugins=PLUGINS)
    first, second = str(caught.value).splitlines()
    assert first == said
    assert second.startswith("  in rank 0 at <string>:1, at simulated time ")


def test_a_tensor_of_another_rank_is_refused() -> None:
    """A rank's tensors are where its PEs are."""

    def bench(rt: Any) -> None:
        x = rt.zeros((8,), name="x", device=1)
        dist.spawn(started(lambda rank, rt: dist.all_reduce(x)))

    with pytest.raises(UsageError) as caught:
        kb.run(bench, "tiny", set=["system.sips=2"], plugins=PLUGINS)
    assert str(caught.value).splitlines()[0] == (
        "dist.all_reduce: tensor 'x' must lie on SIP 0, which is rank 0, not on SIP 1; make it with the rt of this rank."
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"backend": "nccl"},
         "dist.init_process_group: backend must be left out or 'kernbench', not 'nccl'; there is no other."),
        ({"init_method": "env://"},
         "dist.init_process_group: init_method must be left out: dist.spawn has started the ranks already."),
        ({"world_size": 8},
         "dist.init_process_group: world_size must be left out or 2, as dist.spawn has it, not 8."),
        ({"pes": [9]},
         "group 'world': pes must be different positions among the 4 PEs, from 0 to 3, not (9,); name at least one."),
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
    assert str(pytest.raises(UsageError, dist.get_rank).value) == outside
    with pytest.raises(UsageError) as caught:
        kb.run(lambda rt: dist.get_rank(), "tiny", plugins=PLUGINS)
    assert str(caught.value).splitlines()[0] == outside
    with pytest.raises(KernelError) as raised:
        kb.run(in_kernel, "tiny", plugins=PLUGINS)
    assert str(raised.value).splitlines()[0] == (
        "dist.get_rank must be called by the host program of a rank, not in a kernel; use tl.send there."
    )
    assert str(pytest.raises(UsageError, dist.spawn, print).value) == (
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
