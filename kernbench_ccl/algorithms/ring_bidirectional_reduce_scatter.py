"""Reduce-scatter around a ring, in both directions: halves of every part go opposite ways at the same time.

Each half is a ring reduce-scatter (see ring_reduce_scatter). Two ranks have one link between them, and take one
direction.

Closed form: as one direction with S/2: (N - 1)(a + S/(2 N b)).
"""

from typing import Any

from kernbench_ccl.algorithms import _forms, _ring
from kernbench_ccl.algorithms._tiles import Segment, run
from kernbench_ccl.contract import Cost, share

COLLECTIVE = "reduce_scatter"


def ring_bidirectional_reduce_scatter(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Reduce what all ranks have for each rank, `count` elements, and give it to that rank."""
    start, end = share(count, n_pe, pe)
    rings = _ring.both_ways(tl.collective, rank)
    work = _ring.RingWork(tl, len(rings))
    streams = []
    for half, ring in enumerate(rings):
        low, high = share(end - start, len(rings), half)
        segments = [Segment(other * count + start + low, start + low, high - low) for other in range(world)]
        streams.append(_ring.reduce_scatter(work, ring, in_ptr, out_ptr, scratch_ptr, ring.as_placed(segments)))
    run(tl, rank, pe, n_pe, streams)


kernel = ring_bidirectional_reduce_scatter


def scratch_count(count: int, world: int) -> int:
    """Return the elements of one part: step by step, partial sums wait there."""
    return count


def formula(cost: Cost) -> float | str:
    """Return (N - 1)(a + S/(2 N b)) in ns, with two ranks or on a switch S/(N b); S is the size of all parts."""
    return _forms.ring_time(cost, passes=1, both_ways=True)
