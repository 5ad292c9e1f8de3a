"""Wrong data in programs of ranks: whose, which elements, which op, and what the element was made of, by whom."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

import kernbench_ccl.distributed as dist
import kernbench_core as kb
from tests.ccl.distributed.reports import line
from tests.ccl.ranks import PLUGINS, started


def failures(program: Any, world: int = 3, *sets: str) -> tuple[kb.RunResult, list[str]]:
    """Run a program of ranks whose data is wrong; return the result and its failures."""
    settings = [f"system.sips={world}", *sets]
    result = kb.run(lambda rt: dist.spawn(program), "tiny", set=settings, verify_data=True, plugins=PLUGINS)
    assert result.verification is not None and not result.verification.ok
    return result, list(result.verification.failures)


def spoil(x_ptr: Any, tl: Any) -> None:
    """Store three wrong elements."""
    if tl.program_id(0) == 2:
        tl.store(x_ptr + 519, tl.full((3,), 5.0, "f32"))


def test_what_a_rank_spoilt_before_a_collective_is_traced_to_it() -> None:
    """All ranks have it wrong alike: one failure, the op that made it, and the element that each rank brought."""

    @started
    def program(rank: int, rt: Any) -> None:
        x = rt.tensor(np.full(1024, rank + 1.0), "f32", name="x")
        if rank == 1:
            rt.launch(spoil, x)
        dist.all_reduce(x)
        rt.check(x, np.full(1024, 6.0))

    result, (failure,) = failures(program)
    first, *lines = failure.splitlines()
    made = r"add \(op \d+ of PE \d+, sip0\.cube0\.pe\d\.pe_math, [\d.]+ ns\) at \S+naive\.py:\d+"
    before = (
        f"tensor 'x' of ranks 0-2, checked at {line(program, 'rt.check')}, must equal what is expected within "
        "rtol=1e-05, atol=1e-05, but 3 of 1024 elements differ: 519-521; the worst is [519]: got 9.0, expected 6.0. "
        "On rank 0 it was made by "
    )
    after = f", in all_reduce #0 of world, called at {line(program, 'dist.all')} by rank 0, of:"
    assert re.fullmatch(re.escape(before) + made + re.escape(after), first)
    stored = line(spoil, "tl.store")
    way = (
        f"  5.0: full (op 0 of PE 6) at {stored}, in the launch of 'spoil', called at {line(program, 'rt.launch')} by "
        f"rank 1 -> store at {Path(stored).name} -> "
    )
    through = r"load at naive\.py:\d+ -> recv by rank 0 at naive\.py:\d+ -> add at naive\.py:\d+"
    assert re.fullmatch(re.escape(way) + through, lines[0])
    assert lines[1:] == ["  1.0 of rank 0, 3.0 of rank 2: written by the host"]
    assert result.verification is not None and (result.verification.wrong, result.verification.checked) == (3, 3)


def test_ranks_that_are_wrong_in_other_ways_are_told_apart() -> None:
    """Each failure names its rank; the number of a check is counted in its own program."""

    @started
    def program(rank: int, rt: Any) -> None:
        x = rt.tensor(np.zeros(8), "f32", name="x")
        rt.check(x, np.zeros(8))
        rt.check(x, np.full(8, rank + 1.0))

    at = line(program, "rank + 1.0")
    assert failures(program, 2)[1] == [
        f"tensor 'x' (check 2) of rank {rank}, checked at {at}, must equal what is expected within rtol=1e-05, "
        f"atol=1e-05, but 8 of 8 elements differ: 0-7; the worst is [0]: got 0.0, expected {rank + 1.0}. No op made "
        "it: it was written by the host."
        for rank in range(2)
    ]


def test_what_came_through_two_collectives_ends_at_the_first() -> None:
    """What another call has made is told, with that call, and not taken apart any more."""

    @started
    def program(rank: int, rt: Any) -> None:
        x = rt.tensor(np.full(64, rank + 1.0), "f32", name="x")
        dist.all_reduce(x)  # first
        dist.all_reduce(x)
        rt.check(x, np.full(64, 8.0))

    _, (failure,) = failures(program, 2)
    first, *lines = failure.splitlines()
    assert ", in all_reduce #1 of world, called at " in first
    first_call = line(program, '# first')
    assert len(lines) == 1
    assert lines[0].startswith("  3.0 of rank 0, 3.0 of rank 1: add at ")
    assert lines[0].endswith(f", in all_reduce #0 of world, called at {first_call}")


def test_many_contributions_are_counted() -> None:
    """Sixteen that are alike are told, after what stands alone, whose way is cut in the middle where it is long."""

    def ones(x_ptr: Any, n: int, tl: Any) -> None:
        tl.store(x_ptr + tl.program_id(0) * n, tl.full((n,), 1.0, "f32"))

    @started
    def program(rank: int, rt: Any) -> None:
        x = rt.tensor(np.full(160, 10.0), "f32", name="x")
        if rank == 17:
            rt.launch(ones, x, 40)
        dist.all_reduce(x)
        rt.check(x, np.full(160, 180.0))

    _, (failure,) = failures(program, 18)
    first, *lines = failure.splitlines()
    assert first.startswith("tensor 'x' of ranks 0-17, checked at ")
    assert lines[0].startswith("  1.0: full (op 0 of PE ") and " by rank 17 -> store at " in lines[0]
    told = ", ".join(f"10.0 of rank {rank}" for rank in range(16))
    assert lines[1:] == [f"  {told} and 1 more: written by the host"]
