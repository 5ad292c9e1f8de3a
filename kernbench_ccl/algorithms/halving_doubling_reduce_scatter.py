"""Reduce-scatter by recursive halving, for a power of two of ranks.

Ranks exchange halves of what they still have at distance N/2, N/4, ..., 1, reducing what they keep.

Closed form: log2(N) a + (N - 1)/N S/b (S: all parts) where partners share no links.
"""

from typing import Any

from kernbench_ccl.algorithms import _forms, _halving
from kernbench_ccl.algorithms._halving import Cube
from kernbench_ccl.algorithms._tiles import Segment, meet
from kernbench_ccl.contract import Cost, Network, share

COLLECTIVE = "reduce_scatter"


def halving_doubling_reduce_scatter(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Reduce what all ranks have for each rank, `count` elements, and give it to that rank."""
    start, end = share(count, n_pe, pe)
    segments = [Segment(other * count + start, start, end - start) for other in range(world)]
    cube = Cube(rank, world, int)
    if not tl.collective.pipeline:
        kept = _halving.Kept(tl)
        _halving.stepped_halve(tl, cube, in_ptr, scratch_ptr, out_ptr, segments, kept, lambda: meet(tl, rank, pe, n_pe))
        kept.settle()
        return
    for part in _halving.parts_of(tl, cube, segments):
        outbox = _halving.outbox_of(tl, cube, part)
        own = _halving.own_tiles(tl, cube, in_ptr, segments, part)
        finished = _halving.halve(tl, cube, own, segments, part, outbox)
        for piece, x in zip(cube.pieces(segments, [0], part), finished, strict=True):
            if piece.length:
                tl.store(out_ptr + piece.target, x)
        outbox.flush()


kernel = halving_doubling_reduce_scatter


def refuses(world: int, network: Network) -> str | None:
    """Say that a number of ranks that is no power of two will not do."""
    if world & (world - 1) == 0:
        return None
    return (
        f"halving_doubling_reduce_scatter must have a power of two of ranks, not {world}; choose ring, which takes any "
        "number."
    )


def scratch_count(count: int, world: int) -> int:
    """Return the elements of all parts: step by step, partial sums wait there."""
    return count * world


def formula(cost: Cost) -> float | str:
    """Return log2(N) a + (N - 1)/N S/b in ns; S is the size of all parts."""
    return _forms.doubling_time(cost)
