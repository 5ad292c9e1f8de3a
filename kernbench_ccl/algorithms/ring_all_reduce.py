"""All-reduce around a ring, in one direction: a reduce-scatter, then an all-gather.

Rank r sends to the next one, r + 1 on a ring. Each PE takes its share of the vector and cuts it into N segments. In
N - 1 steps partial sums travel around until each rank has the whole sum of a segment; in N - 1 more every rank passes
on what it got last.

Closed form: in each of 2(N - 1) steps every link carries one segment of S/N bytes, so that a step takes a + S/(N b)
with the latency a and the bandwidth b of a link: 2(N - 1)(a + S/(N b)).
"""

from typing import Any

from kernbench_ccl.algorithms import _forms, _ring
from kernbench_ccl.algorithms._tiles import cut, run
from kernbench_ccl.contract import Cost, share

COLLECTIVE = "all_reduce"


def ring_all_reduce(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Reduce `count` elements of every rank and give every rank the result."""
    start, end = share(count, n_pe, pe)
    ring = _ring.ring_of_ranks(tl.collective, rank)
    work = _ring.RingWork(tl)
    run(tl, rank, pe, n_pe, [_ring.all_reduce(work, ring, in_ptr, out_ptr, cut(start, end, world))])


kernel = ring_all_reduce


def formula(cost: Cost) -> float | str:
    """Return 2(N - 1)(a + S/(N b)) in ns."""
    return _forms.ring_time(cost, passes=2)
