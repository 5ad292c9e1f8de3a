"""All-gather around a ring, in one direction: every rank passes on what it got last.

Rank r sends to the next one, r + 1 on a ring: first its own part, then, in each of N - 2 more steps, the part that came
in the step before.

Closed form: in each of N - 1 steps every link carries one part of S/N bytes (S: all parts): (N - 1)(a + S/(N b)).
"""

from typing import Any

from kernbench_ccl.algorithms import _forms, _ring
from kernbench_ccl.algorithms._tiles import Segment, run
from kernbench_ccl.contract import Cost, share

COLLECTIVE = "all_gather"


def ring_all_gather(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Give every rank the `count` elements of each, in rank order."""
    start, end = share(count, n_pe, pe)
    segments = [Segment(start, other * count + start, end - start) for other in range(world)]
    ring = _ring.ring_of_ranks(tl.collective, rank)
    work = _ring.RingWork(tl)
    run(tl, rank, pe, n_pe, [_ring.all_gather(work, ring, in_ptr, out_ptr, ring.as_placed(segments))])


kernel = ring_all_gather


def formula(cost: Cost) -> float | str:
    """Return (N - 1)(a + S/(N b)) in ns; S is the size of all parts."""
    return _forms.ring_time(cost, passes=1)
