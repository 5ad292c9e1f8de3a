"""All-gather around a ring, in both directions: halves of every part go opposite ways at the same time.

Each half is a ring all-gather (see ring_all_gather). Two ranks have one link between them, and take one direction.

Closed form: as one direction with S/2: (N - 1)(a + S/(2 N b)).
"""

from typing import Any

from kernbench_ccl.algorithms import _forms, _ring
from kernbench_ccl.algorithms._tiles import Segment, run
from kernbench_ccl.contract import Cost, share

COLLECTIVE = "all_gather"


def ring_bidirectional_all_gather(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Give every rank the `count` elements of each, in rank order."""
    start, end = share(count, n_pe, pe)
    rings = _ring.both_ways(tl.collective, rank)
    work = _ring.RingWork(tl, len(rings))
    streams = []
    for half, ring in enumerate(rings):
        low, high = share(end - start, len(rings), half)
        segments = [Segment(start + low, other * count + start + low, high - low) for other in range(world)]
        streams.append(_ring.all_gather(work, ring, in_ptr, out_ptr, ring.as_placed(segments)))
    run(tl, rank, pe, n_pe, streams)


kernel = ring_bidirectional_all_gather


def formula(cost: Cost) -> float | str:
    """Return (N - 1)(a + S/(2 N b)) in ns, with two ranks or on a switch S/(N b); S is the size of all parts."""
    return _forms.ring_time(cost, passes=1, both_ways=True)
