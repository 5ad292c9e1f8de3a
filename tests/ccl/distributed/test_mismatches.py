"""Ranks that do not call what the others call: never a hang, exit code 4, and a report that names both sides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernbench_ccl.distributed as dist
from tests.ccl import naive
from tests.ccl.distributed.reports import host_lines, line, report
from tests.ccl.ranks import started


def vector(rt: Any, count: int = 100, dtype: str = "f32") -> Any:
    """Return a tensor of the rank."""
    return rt.zeros((count,), dtype)


def test_a_whole_report() -> None:
    """Host lines, the collective with its number, kernel lines, queues, what the PE did before, why it cannot end."""

    def program(rank: int, rt: Any) -> None:
        dist.init_process_group(pes=[0, 1], set=["defaults.pes=2"])
        x = rt.tensor(np.zeros(8192, np.float32))
        dist.barrier()
        if rank == 1:
            dist.broadcast(x, 0)
        else:
            dist.all_reduce(x)

    own, other = line(program, "dist.all_reduce(x)"), line(program, "dist.broadcast(x, 0)")
    found = report(program, 2)
    recv = line(naive.exchange, "tl.recv")
    assert [words.rpartition(", for ")[0] or words for words in found[1:4]] == [
        f"  rank 0 at {own} waits for all_reduce #1 of world",
        f"  rank 1 at {other} waits for broadcast #1 (8192 x f32, src 0) of world",
        f"    this call was not launched, as it does not fit: rank 0 called all_reduce #1 (8192 x f32, sum) at {own}",
    ]
    assert found[0].startswith("deadlock at simulated time ")
    assert found[4:6] == ["  kernels that wait:", f"    rank 0, all_reduce #1 of world, called at {own}:"]
    assert found[6].startswith("      sip0.cube0.pe0.pe_cpu waits in kernel 'algorithm', for ")
    assert found[6].endswith(" (2 PEs wait so):")
    assert found[7] == f"        tl.recv at {recv} waits for a message from sip1.cube0.pe0, 1 received before"
    load = line(naive.exchange, "tl.send")
    assert found[8].startswith(f"        before that they did tl.send at {load}, until ")
    assert found[9] == "  waited for, and idle:"
    assert found[10].startswith("    sip1.cube0.pe0 ended its part of barrier #0 of world, called at ")
    assert found[11].startswith("    sip1.cube0.pe1 ended its part of barrier #0 of world, called at ")
    assert found[12:] == [
        "  no wait-for cycle: sip0.cube0.pe0 (rank 0) -> sip1.cube0.pe0 (rank 1) -> the program of rank 1, which waits "
        "for broadcast #1 (8192 x f32, src 0) of world"
    ]


@pytest.mark.parametrize(
    ("first", "second", "called", "not_launched"),
    [
        ("dist.all_reduce(vector(rt, 100))", "dist.all_reduce(vector(rt, 101))",
         "all_reduce #0 (100 x f32, sum)", "all_reduce #0 (101 x f32, sum)"),
        ("dist.all_reduce(vector(rt))", "dist.all_reduce(vector(rt, 100, 'int32'))",
         "all_reduce #0 (100 x f32, sum)", "all_reduce #0 (100 x int32, sum)"),
        ("dist.all_reduce(vector(rt))", "dist.all_reduce(vector(rt), 'max')",
         "all_reduce #0 (100 x f32, sum)", "all_reduce #0 (100 x f32, max)"),
        ("dist.broadcast(vector(rt), 1)", "dist.broadcast(vector(rt), 0)",
         "broadcast #0 (100 x f32, src 1)", "broadcast #0 (100 x f32, src 0)"),
        ("dist.barrier()", "dist.all_reduce(vector(rt))", "barrier #0", "all_reduce #0 (100 x f32, sum)"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_not_launched(first: str, second: str, called: str, not_launched: str) -> None:
    """Size, dtype, reduction, root, function: both calls are named with what differs."""

    @started
    def program(rank: int, rt: Any) -> None:
        if rank == 0:
            eval(first)
        else:
            for _ in range(20):
                rt.zeros((1 << 12,))
            eval(second)

    at = line(program, "eval(first)"), line(program, "eval(second)")
    rank0, rank1 = host_lines(report(program, 2))
    assert rank0 == f"  rank 0 at <string>:1 waits for {called.partition(' (')[0]} of world"
    assert rank1 == (
        f"  rank 1 at <string>:1 waits for {not_launched} of world: this call was not launched, as it does not fit: "
        f"rank 0 called {called} at <string>:1"
    )
    assert at[0] != at[1]


def test_a_rank_that_never_calls() -> None:
    """It has ended, and that is where the waits lead to."""

    @started
    def program(rank: int, rt: Any) -> None:
        x = vector(rt)
        if rank != 1:
            dist.all_reduce(x)

    found = report(program)
    here = line(program, "dist.all_reduce(x)")
    assert host_lines(found) == [f"  ranks 0, 2 at {here} wait for all_reduce #0 of world", "  rank 1 has ended"]
    assert found[-1] == (
        "  no wait-for cycle: sip0.cube0.pe0 (rank 0) -> sip1.cube0.pe0 (rank 1) -> the program of rank 1, which has "
        "ended"
    )


def test_a_message_that_nobody_sends() -> None:
    """The line of the receive, and the rank that has ended."""

    @started
    def program(rank: int, rt: Any) -> None:
        x = vector(rt)
        if rank == 0:
            dist.recv(x, 1)

    found = report(program, 2)
    assert host_lines(found) == [
        f"  rank 0 at {line(program, 'dist.recv')} waits for recv #0 from rank 1", "  rank 1 has ended"
    ]  # fmt: skip
    assert found[-1] == (
        "  no wait-for cycle: sip0.cube0.pe2 (rank 0) -> sip1.cube0.pe0 (rank 1) -> the program of rank 1, which has "
        "ended"
    )


def test_messages_of_different_sizes() -> None:
    """The later side is not launched; both are named."""

    @started
    def program(rank: int, rt: Any) -> None:
        if rank == 0:
            dist.send(vector(rt, 10), 1)
        else:
            rt.zeros((1 << 14,))
            dist.recv(vector(rt, 11), 0)

    found = host_lines(report(program, 2))
    assert found[-1] == (
        f"  rank 1 at {line(program, 'dist.recv')} waits for message #0 (11 x f32) of the messages from rank 0 to rank "
        f"1: this call was not launched, as it does not fit: rank 0 called message #0 (10 x f32) at "
        f"{line(program, 'dist.send')}"
    )


def test_groups_in_different_order() -> None:
    """Each call fits its group; the kernels of two ranks wait for each other, which is the cycle."""

    @started
    def program(rank: int, rt: Any) -> None:
        group, x = dist.new_group([0, 1]), vector(rt)
        first, second = (None, group) if rank == 0 else (group, None)
        dist.all_reduce(x, group=first)
        dist.all_reduce(x, group=second)

    found = report(program, 2)
    here = line(program, "group=first")
    assert host_lines(found) == [
        f"  rank 0 at {here} waits for all_reduce #0 of world", f"  rank 1 at {here} waits for all_reduce #0 of group 1"
    ]  # fmt: skip
    assert found[-1] == (
        "  wait-for cycle: sip0.cube0.pe0 (rank 0) -> sip1.cube0.pe0 (rank 1) -> sip0.cube0.pe0 (rank 0)"
    )


def test_different_groups_are_made() -> None:
    """new_group is a call of all ranks like any other."""

    @started
    def program(rank: int, rt: Any) -> None:
        vector(rt)
        dist.new_group([0, 1] if rank else [1, 0], sort_ranks=False)

    found = host_lines(report(program, 2))
    here = line(program, "new_group")
    assert found == [
        "  rank 0 has ended",
        f"  rank 1 at {here} waits for new_group #0 (ranks [0, 1]): this group was not made, as the call does not fit: "
        f"rank 0 called new_group #0 (ranks [1, 0]) at {here}",
    ]


def test_a_rank_that_did_not_make_a_group() -> None:
    """Before the calls that only some have made too, which are what comes of it."""

    @started
    def program(rank: int, rt: Any) -> None:
        x, group = vector(rt), None
        if rank == 0:
            group = dist.new_group([0, 1])
        dist.all_reduce(x, group=group)

    found = report(program, 2)
    here = line(program, "dist.all_reduce")
    assert found[-5:-1] == [
        "  calls that only some ranks have made:",
        f"    rank 1 has not made new_group #0 (ranks [0, 1]), which rank 0 made at {line(program, 'dist.new_group')}",
        f"    rank 0 has not made all_reduce #0 (100 x f32, sum) of world, which rank 1 made at {here}",
        f"    rank 1 has not made all_reduce #0 (100 x f32, sum) of group 1, which rank 0 made at {here}",
    ]


def test_a_cycle_of_full_queues() -> None:
    """Two ranks send until no slot is free, and neither receives: the cycle goes through both programs."""

    @started
    def program(rank: int, rt: Any) -> None:
        x = vector(rt)
        for _ in range(8):
            dist.send(x, 1 - rank)

    found = report(program, 2)
    here = line(program, "dist.send")
    assert host_lines(found) == [
        f"  rank 0 at {here} waits for send #4 to rank 1", f"  rank 1 at {here} waits for send #4 to rank 0"
    ]  # fmt: skip
    assert any(words.endswith("waits for a free slot of the queue to sip1.cube0.pe2, 4 of 4 full") for words in found)
    assert found[-1] == (
        "  wait-for cycle: the program of rank 0 -> sip0.cube0.pe0 (rank 0) -> sip1.cube0.pe2 (rank 1) -> the program "
        "of rank 1 -> sip1.cube0.pe0 (rank 1) -> sip0.cube0.pe2 (rank 0) -> the program of rank 0"
    )


def test_splits_that_do_not_agree() -> None:
    """What one rank sends and another expects are both said."""

    @started
    def program(rank: int, rt: Any) -> None:
        x, y = vector(rt), vector(rt)
        for _ in range(9 * rank):
            vector(rt)
        dist.all_to_all_single(y, x, [3, 2] if rank else [2, 2], [2, 2])

    assert host_lines(report(program, 2))[1] == (
        f"  rank 1 at {line(program, 'all_to_all')} waits for all_to_all_single #0 of world: this call was not "
        "launched, as it does not fit: rank 0 sends 2 rows to rank 1, which expects 3"
    )


def test_eight_ranks_of_32_pes_are_a_page() -> None:
    """PEs that wait alike are told once, ranks that wait alike too."""

    def program(rank: int, rt: Any) -> None:
        dist.init_process_group(set=["defaults.pes=32"])
        x = rt.empty((1 << 16,))
        rt.zeros((64,))
        if rank != 5:
            dist.broadcast(x, 5)

    found = report(program, 8, "cube.pes=32", "cube.hbm.capacity=16 GiB")
    here = line(program, "dist.broadcast")
    assert host_lines(found) == [
        f"  ranks 0-4, 6-7 at {here} wait for broadcast #0 of world", "  rank 5 has ended"
    ]  # fmt: skip
    assert len(found) < 30
    assert sum("(32 PEs wait so)" in words for words in found) == 3
    assert f"    ranks 3-4, 6-7, broadcast #0 of world, called at {here}: wait at the same lines" in found


def test_ranks_are_told_in_their_order() -> None:
    """Rank 2 comes before rank 10, and those that wait at other lines are told in full too."""

    def program(rank: int, rt: Any) -> None:
        dist.init_process_group(set=["defaults.pes=1"])
        x = vector(rt)
        if rank == 1:
            dist.recv(x, 0)
        dist.broadcast(x, 1)

    found = report(program, 12)
    call, recv = line(program, "dist.broadcast"), line(program, "dist.recv")
    headings = [words.strip() for words in found if words.strip().startswith("rank") and " called at " in words]
    assert headings == [
        f"rank 0, broadcast #0 of world, called at {call}:",
        f"rank 1, recv #0 from rank 0, called at {recv}:",
        f"rank 2, broadcast #0 of world, called at {call}:",
        f"rank 3, broadcast #0 of world, called at {call}:",
        f"ranks 4-11, broadcast #0 of world, called at {call}: wait at the same lines",
    ]


def test_calls_that_only_some_ranks_have_made_are_found_at_the_end() -> None:
    """The root of a broadcast and the sender of a message need not wait for anybody: still, nobody took their data."""

    @started
    def program(rank: int, rt: Any) -> None:
        x = vector(rt)
        if rank == 0:
            dist.broadcast(x, 0)
            dist.send(x, 1)

    assert report(program)[:3] == [
        "dist.spawn: every rank must have made the same calls at its end, and not all have.",
        "  ranks 1, 2 have not made broadcast #0 (100 x f32, src 0) of world, which rank 0 made at "
        f"{line(program, 'broadcast')}",
        "  rank 1 has not made message #0 (100 x f32) of the messages from rank 0 to rank 1, which rank 0 made at "
        f"{line(program, 'dist.send')}",
    ]


def test_polls_of_a_call_that_a_rank_never_makes() -> None:
    """They end in the report, with the line of the poll and the call that is polled."""

    def program(rank: int, rt: Any) -> None:
        dist.init_process_group()
        x = vector(rt)
        if rank != 1:
            work = dist.all_reduce(x, async_op=True)
            while work is not None and not work.is_completed():
                pass

    lines = report(program)
    assert host_lines(lines) == [
        f"  ranks 0, 2 at {line(program, 'while work')} wait for all_reduce #0 of world", "  rank 1 has ended"
    ]  # fmt: skip
    assert lines[1].endswith(", for 1 ms")
    assert lines[-1].endswith("the program of rank 1, which has ended")
