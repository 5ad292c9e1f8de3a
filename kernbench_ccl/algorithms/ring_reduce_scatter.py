"""Reduce-scatter around a ring, in one direction: partial sums travel until they end at their rank.

Rank r sends to the next one, r + 1 on a ring: first its own data for the one before it, then, in each of N - 2 more
steps, what came in the step before with its own data added. The sum for rank r is complete when it gets there.

Closed form: in each of N - 1 steps every link carries one part of S/N bytes (S: all parts): (N - 1)(a + S/(N b)).
"""

from typing import Any

from kernbench_ccl.algorithms import _forms, _ring
from kernbench_ccl.algorithms._tiles import Segment, run
from kernbench_ccl.contract import Cost, share

COLLECTIVE = "reduce_scatter"


def ring_reduce_scatter(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Reduce what all ranks have for each rank, `count` elements, and give it to that rank."""
    start, end = share(count, n_pe, pe)
    segments = [Segment(other * count + start, start, end - start) for other in range(world)]
    ring = _ring.ring_of_ranks(tl.collective, rank)
    work = _ring.RingWork(tl)
    run(tl, rank, pe, n_pe, [_ring.reduce_scatter(work, ring, in_ptr, out_ptr, scratch_ptr, ring.as_placed(segments))])


kernel = ring_reduce_scatter


def scratch_count(count: int, world: int) -> int:
    """Return the elements of one part: step by step, partial sums wait there."""
    return count


def formula(cost: Cost) -> float | str:
    """Return (N - 1)(a + S/(N b)) in ns; S is the size of all parts."""
    return _forms.ring_time(cost, passes=1)
