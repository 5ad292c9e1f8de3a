"""All-reduce around a ring, in both directions: halves of the vector go opposite ways at the same time.

Each half is a ring all-reduce (see ring_all_reduce), one each way. Two ranks have one link between them,
and take one direction.

Closed form: as one direction with S/2: 2(N - 1)(a + S/(2 N b)).
"""

from typing import Any

from kernbench_ccl.algorithms import _forms, _ring
from kernbench_ccl.algorithms._tiles import cut, run
from kernbench_ccl.contract import Cost, share

COLLECTIVE = "all_reduce"


def ring_bidirectional_all_reduce(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Reduce `count` elements of every rank and give every rank the result."""
    start, end = share(count, n_pe, pe)
    rings = _ring.both_ways(tl.collective, rank)
    work = _ring.RingWork(tl, len(rings))
    streams = []
    for half, ring in enumerate(rings):
        low, high = share(end - start, len(rings), half)
        streams.append(_ring.all_reduce(work, ring, in_ptr, out_ptr, cut(start + low, start + high, world)))
    run(tl, rank, pe, n_pe, streams)


kernel = ring_bidirectional_all_reduce


def formula(cost: Cost) -> float | str:
    """Return 2(N - 1)(a + S/(2 N b)) in ns, with two ranks or on a switch S/(N b)."""
    return _forms.ring_time(cost, passes=2, both_ways=True)
