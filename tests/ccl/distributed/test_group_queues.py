"""Groups that come and go: the slots of a group that every rank has destroyed are free again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernbench_ccl.distributed as dist
import kernbench_core as kb
from kernbench_core.errors import QueueOverflowError, UsageError
from tests.ccl.ranks import PLUGINS, run, started
from tests.open_queues import open_queues


def test_fifty_groups_one_after_another() -> None:
    """Each is made, used and destroyed; all but the world's queues are gone at the end."""
    left: list[int] = []

    def program(rank: int, rt: Any) -> None:
        dist.init_process_group(pes=[0], set=["defaults.pes=1"])
        x = rt.zeros((64,))
        for _ in range(50):
            group = dist.new_group()
            dist.all_reduce(x, "max", group)
            dist.destroy_process_group(group)
        dist.destroy_process_group()

    def bench(rt: Any) -> None:
        dist.spawn(program)
        rt.zeros((64,))  # the last credits are on their way
        left.append(len(open_queues(rt)))

    result = kb.run(bench, "tiny", set=["system.sips=3"], plugins=PLUGINS)
    assert not result.hazards
    assert left == [0]


@pytest.mark.parametrize("tier", ["tcm", "sram", "hbm"])
def test_what_lies_in_the_slots_of_a_group_that_is_gone_is_nobodys(tier: str) -> None:
    """Groups in every tier, with tensors made between them; what is computed is right."""

    @started
    def program(rank: int, rt: Any) -> None:
        for turn in range(3):
            group = dist.new_group()
            x = rt.tensor(np.full(4096, float(rank + turn), np.float32))
            dist.all_reduce(x, group=group)
            dist.destroy_process_group(group)
            dist.barrier()
            rt.check(x, np.full(4096, 3.0 + 3 * turn, np.float32))

    def bench(rt: Any) -> None:
        dist.spawn(program)

    sets = ["system.sips=3", f"components.pe_ipcq.params.tier={tier}"]
    result = kb.run(bench, "tiny", set=sets, plugins=PLUGINS, verify_data=True)
    assert result.verified and not result.hazards


def test_a_group_that_some_rank_still_has_keeps_its_queues() -> None:
    """It can be used by those, and destroyed later."""

    kept: list[int] = []
    gone: list[int] = []

    @started
    def program(rank: int, rt: Any) -> None:
        x = rt.zeros((64,))
        group = dist.new_group([0, 1])
        if rank < 2:
            dist.all_reduce(x, group=group)
        if rank == 0:
            dist.destroy_process_group(group)
        dist.barrier()
        kept.append(len([queue for queue in open_queues(rt) if queue.channel.name == "group 1"]))
        dist.barrier()
        if rank == 1:
            dist.destroy_process_group(group)
            gone.append(len([queue for queue in open_queues(rt) if queue.channel.name == "group 1"]))

    run(program)
    assert min(kept) > 0
    assert gone == [0]


def test_a_destroyed_group_stays_refused() -> None:
    """By the rank that has destroyed it, also when its queues are gone."""

    @started
    def program(rank: int, rt: Any) -> None:
        group = dist.new_group()
        dist.all_reduce(rt.zeros((64,)), group=group)
        dist.destroy_process_group(group)
        dist.barrier()
        dist.all_reduce(rt.zeros((64,)), group=group)

    with pytest.raises(UsageError) as caught:
        run(program, verify=False)
    assert str(caught.value).splitlines()[0] == (
        "dist.all_reduce: group 'group 1' must not be used any more: it was destroyed here."
    )


def test_slots_of_a_collective_that_do_not_fit_name_the_call_and_its_settings() -> None:
    """The call with its number, group and line, and the keys of ccl.yaml by which the slots are chosen."""

    def program(rank: int, rt: Any) -> None:
        dist.init_process_group(pes=[0], set=["defaults.slots=5", "defaults.slot_bytes=1 MiB"])
        dist.all_reduce(rt.zeros((64,)))

    with pytest.raises(QueueOverflowError) as caught:
        run(program, 2, verify=False)
    line = f"{__file__}:{program.__code__.co_firstlineno + 2}"
    assert str(caught.value).splitlines()[0] == (
        f"the queue from sip0.cube0.pe0 to sip1.cube0.pe0, for all_reduce #0 of world, called at {line}, must find 5 "
        "MiB for its slots (5 x 1 MiB) in the tcm there, of which 2 MiB of 2 MiB are free (largest hole 2 MiB); take "
        "at most 1 slot, a smaller slot_bytes or another tier (sram or hbm): slots, slot_bytes and tier in ccl.yaml, "
        'as dist.init_process_group(set=["defaults.tier=hbm"]) or kernbench ccl --config FILE has it.'
    )
