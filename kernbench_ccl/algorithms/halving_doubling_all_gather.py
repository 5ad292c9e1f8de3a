"""All-gather by recursive doubling, for a power of two of ranks.

Ranks exchange all that they have at distance 1, 2, ..., N/2.

Closed form: log2(N) a + (N - 1)/N S/b (S: all parts) where partners share no links.
"""

from typing import Any

from kernbench_ccl.algorithms import _forms, _halving
from kernbench_ccl.algorithms._halving import Cube
from kernbench_ccl.algorithms._tiles import Segment, copy, meet
from kernbench_ccl.contract import Cost, Network, share

COLLECTIVE = "all_gather"


def halving_doubling_all_gather(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Give every rank the `count` elements of each, in rank order."""
    start, end = share(count, n_pe, pe)
    segments = [Segment(start, other * count + start, end - start) for other in range(world)]
    cube = Cube(rank, world, int)
    if not tl.collective.pipeline:
        copy(tl, in_ptr, out_ptr, segments[rank])
        kept = _halving.Kept(tl)
        _halving.stepped_double(tl, cube, out_ptr, segments, kept, lambda: meet(tl, rank, pe, n_pe))
        kept.settle()
        return
    for part in _halving.parts_of(tl, cube, segments):
        outbox = _halving.outbox_of(tl, cube, part)
        pieces = cube.pieces(segments, [0], part)
        own = [tl.load(in_ptr + p.source, shape=(p.length,), wait=False) if p.length else None for p in pieces]
        _halving.double(tl, cube, own, out_ptr, segments, part, outbox)
        outbox.flush()


kernel = halving_doubling_all_gather


def refuses(world: int, network: Network) -> str | None:
    """Say that a number of ranks that is no power of two will not do."""
    if world & (world - 1) == 0:
        return None
    return (
        f"halving_doubling_all_gather must have a power of two of ranks, not {world}; choose ring, which takes any "
        "number."
    )


def formula(cost: Cost) -> float | str:
    """Return log2(N) a + (N - 1)/N S/b in ns; S is the size of all parts."""
    return _forms.doubling_time(cost)
