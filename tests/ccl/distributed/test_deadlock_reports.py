"""What a deadlock report says of ranks beside those that wait: what the others did last, and what never began."""

from __future__ import annotations

from typing import Any

import kernbench_ccl.distributed as dist
from tests.ccl import naive
from tests.ccl.distributed.reports import line, report


def without_times(words: str) -> str:
    """Leave out of a line when its launch was over, and the last call there."""
    start, _, end = words.partition("; the last call there was ")
    return start.rpartition(", at ")[0] + (f"; {end.partition(', until ')[0]}" if end else "")


def test_a_rank_that_has_ended_is_told_with_what_it_did_last() -> None:
    """Its PEs' last launch, with the line that called it and their last call there; its program's last launch."""

    def program(rank: int, rt: Any) -> None:
        dist.init_process_group(pes=[0, 1], set=["defaults.pes=2"])
        x = rt.zeros((64,))
        dist.broadcast(x, 0)
        if rank != 1:
            dist.all_reduce(x)

    found = report(program)
    here = line(program, "dist.broadcast")
    at = found.index("  waited for, and idle:")
    assert without_times(found[at + 1]) == (
        f"    sip1.cube0.pe0-1 ended their part of broadcast #0 of world, called at {here}; tl.store at "
        f"{line(naive.algorithm, 'out_ptr + start, found[call.root]')}"
    )
    assert found[at + 2].rpartition(", over at ")[0] == (
        f"    the program of rank 1 has ended; its last launch was broadcast #0 of world, called at {here}"
    )
    assert found[at + 3].startswith("  no wait-for cycle: ")


def test_a_rank_that_has_launched_nothing() -> None:
    """Its PEs have run no kernel."""

    def program(rank: int, rt: Any) -> None:
        dist.init_process_group(pes=[0])
        if rank == 0:
            dist.recv(rt.zeros((64,)), 1)

    found = report(program, 2)
    at = found.index("  waited for, and idle:")
    assert found[at + 1 : at + 3] == [
        "    sip1.cube0.pe0 has run no kernel", "    the program of rank 1 has ended, and has launched nothing"
    ]  # fmt: skip


def test_launches_that_never_started_are_told_by_rank_and_call() -> None:
    """The ranks that called alike, the collective with its number and line, and the PEs."""

    def program(rank: int, rt: Any) -> None:
        dist.init_process_group(pes=[0, 1], set=["defaults.pes=2"])
        x, y = rt.zeros((64,)), rt.zeros((64,))
        if rank != 1:
            dist.all_reduce(x, async_op=True)
            dist.broadcast(y, 0, async_op=True).wait()

    found = report(program)
    at = found.index("  PEs that were launched but never started:")
    assert found[at + 1] == (
        f"    ranks 0, 2, broadcast #1 of world, called at {line(program, 'dist.broadcast')}: sip0.cube0.pe0-1, "
        "sip2.cube0.pe0-1"
    )
