"""Calls that are wrong by themselves are one sentence each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernbench_ccl.distributed as dist
import kernbench_core as kb
from kernbench_core.errors import KernelError, UnsupportedError, UsageError
from tests.ccl.ranks import PLUGINS, run, started

X = "rt.tensor(np.ones(8, np.float32), name='x')"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("dist.all_reduce(3)", "dist.all_reduce: tensor must be a tensor that this rank's rt made, not 3; rt.tensor "
         "makes one."),
        ("dist.all_reduce(np.ones((64, 2)))", "dist.all_reduce: tensor must be a tensor that this rank's rt made, not "
         "a ndarray of shape (64, 2); rt.tensor makes one."),
        (f"dist.all_reduce({X}, 'xor')",
         "dist.all_reduce: op: a reduction must be one of sum, avg, product, min, max, not 'xor'; choose one of "
         "these."),
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
        (f"(lambda x: dist.all_to_all_single(x, x))({X})",
         "dist.all_to_all_single: output must be another tensor than input 'x', whose parts would be overwritten "
         "before they are sent; make one with rt.empty."),
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
        ("dist.new_group([1, 1])",
         "dist.new_group: ranks must be different ranks from 0 to 1, not [1, 1]; name at least one."),
        ("dist.new_group(1)", "dist.new_group: ranks must be different ranks from 0 to 1, not 1; name at least one."),
        ("dist.new_group([[0]])",
         "dist.new_group: ranks must be different ranks from 0 to 1, not [[0]]; name at least one."),
        ("dist.new_group([0, 1], pes=[9])",
         "dist.new_group: pes must be different positions among the 4 PEs, from 0 to 3, not (9,); name at least one."),
        ("dist.get_rank(3)",
         "dist.get_rank: group must be None or what dist.new_group returned in this dist.spawn, not 3."),
        ("dist.get_global_rank(None, 2)",
         "dist.get_global_rank: group_rank must be a place in the group 'world', from 0 to 1, not 2."),
        ("dist.get_global_rank(None, 'a')",
         "dist.get_global_rank: group_rank must be a place in the group 'world', from 0 to 1, not 'a'."),
        ("dist.get_group_rank(None, 2)",
         "dist.get_group_rank: global_rank must be a rank of the group 'world', one of [0, 1], not 2."),
        ("dist.new_group(timeout=3)", "dist.new_group: timeout must be left out; settings are in ccl.yaml."),
        ("dist.barrier(device_ids=[0])", "dist.barrier: device_ids must be left out: every rank is one SIP."),
        ("dist.spawn(print)",
         "dist.spawn must be called by the bench, not by rank 0; ranks cannot start more ranks."),
        ("dist.destroy_process_group() or dist.get_rank()",
         "dist.get_rank must come after dist.init_process_group, and rank 0 has not called that; call it first."),
        ("parent.zeros((4,))",
         "rt.zeros must be called through the rt of rank 0, not of bench 'bench'; use the rt that the program was "
         "given."),
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
        "dist.all_reduce: tensor 'x' must lie on SIP 0, which is rank 0, not on SIP 1; make it with the rt of this "
        "rank."
    )


def test_a_group_of_another_spawn_is_refused_in_short() -> None:
    """It is named, with its ranks."""
    kept: list[Any] = []

    def bench(rt: Any) -> None:
        dist.spawn(started(lambda rank, rt: kept.append(dist.new_group([0, 1]))))
        dist.spawn(started(lambda rank, rt: dist.all_reduce(rt.zeros((8,)), group=kept[0])))

    with pytest.raises(UsageError) as caught:
        kb.run(bench, "tiny", set=["system.sips=2"], plugins=PLUGINS)
    assert str(caught.value).splitlines()[0] == (
        "dist.all_reduce: group must be None or what dist.new_group returned in this dist.spawn, not <ProcessGroup "
        "'group 1' of ranks [0, 1]>, of another one."
    )


def test_none_is_the_group_of_all_ranks() -> None:
    """As in torch, for every question."""

    @started
    def program(rank: int, rt: Any) -> list[Any]:
        dist.new_group([1])
        rt.zeros((8,))
        return [
            dist.get_rank(None), dist.get_world_size(None), dist.get_process_group_ranks(None),
            dist.get_global_rank(None, 1), dist.get_group_rank(None, 1),
        ]  # fmt: skip

    assert run(program, 2)[1] == [[rank, 2, [0, 1], 1, 1] for rank in range(2)]


@pytest.mark.parametrize(
    "call",
    [
        "dist.all_reduce(rt.zeros((4,), 'int32'), dist.ReduceOp.AVG)", "dist.all_reduce(x, dist.ReduceOp.BAND)",
        "dist.all_reduce_coalesced([x])", "dist.isend(x, 1 - rank, tag=1)", "dist.barrier(device_ids=[0])",
        "dist.all_reduce(x, async_op=True).wait(3)", "dist.new_group(timeout=3)",
    ],
)  # fmt: skip
def test_what_is_refused_by_name_has_one_exit_code(call: str) -> None:
    """What torch has and kernbench has not, whatever it is."""
    with pytest.raises(UnsupportedError) as caught:
        run(started(lambda rank, rt: eval(call, {"dist": dist, "x": rt.zeros((8,)), "rank": rank, "rt": rt})), 2)
    assert caught.value.exit_code == 6
