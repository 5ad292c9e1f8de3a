"""Collectives over two dimensions of ranks, one ring after the other: what the mesh and torus algorithms run.

A vector is cut into parts that take different ways at the same time: along rows first or along columns first, up or
down. The parts are dealt to the PEs of a rank, so that each PE does one thing after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from kernbench_ccl.algorithms import _ring
from kernbench_ccl.algorithms._ring import Ring, Work
from kernbench_ccl.algorithms._tiles import Segment, Stream, copy, cut
from kernbench_ccl.contract import Cost


@frozen
class Way:
    """How a PE's share goes through the grid: the ring that it takes first, the other, and whether rows are first."""

    width: int
    height: int
    first: Ring
    second: Ring
    rows_first: bool

    def parts_of(self, place: int) -> list[int]:
        """Return the ranks whose place in the first dimension is `place`, in the order of the second."""
        if self.rows_first:
            return [row * self.width + place for row in range(self.height)]
        return [place * self.width + column for column in range(self.width)]


def way_of(grid: tuple[int, int], rank: int, pe: int, n_pe: int, both_ways: bool) -> Way:
    """Choose the way of a PE: every second one takes columns first, and of those every second one goes backwards.

    With fewer PEs than ways, fewer ways are taken: two by two PEs, one by a single one.
    """
    width, height = grid
    ways = next(ways for ways in (4, 2, 1) if ways <= n_pe and ways <= (4 if both_ways else 2))
    number = pe % ways
    column, row = rank % width, rank // width
    along_row = _ring_of([row * width + c for c in range(width)], column, number >= 2)
    along_column = _ring_of([r * width + column for r in range(height)], row, number >= 2)
    if number % 2:
        return Way(width, height, along_column, along_row, False)
    return Way(width, height, along_row, along_column, True)


def _ring_of(ranks: Sequence[int], place: int, backwards: bool) -> Ring:
    size = len(ranks)
    nxt, prv = ranks[(place + 1) % size], ranks[(place - 1) % size]
    if backwards:
        return Ring(-place % size, size, prv, nxt, tuple(-p % size for p in range(size)))
    return Ring(place, size, nxt, prv)


def all_reduce(work: Work, rings: Sequence[Ring], source: Any, target: Any, start: int, end: int) -> Stream:
    """Reduce a run of elements over rings within rings, the first one first, and give everyone the result.

    A reduce-scatter over each ring leaves a shorter run for the next; over the last it is an all-reduce; then an
    all-gather over each, in the opposite order.
    """
    rings = [ring for ring in rings if ring.size > 1]
    if not rings:
        copy(work.tl, source, target, Segment(start, start, end - start), finish=True)
        return
    first, inner = rings[0], rings[1:]
    segments = cut(start, end, first.size)
    if not inner:
        yield from _ring.all_reduce(work, first, source, target, segments)
        return
    yield from _ring.reduce_scatter(work, first, source, target, target, segments, finish=False)
    own = segments[first.place]
    yield from all_reduce(work, inner, target, target, own.target, own.target + own.length)
    yield from _ring.all_gather(work, first, target, target, segments, placed=True)


def all_gather(work: Work, way: Way, source: Any, target: Any, start: int, end: int, count: int) -> Stream:
    """Give everyone the elements from `start` to `end` of every rank's part of `count`."""
    length, row = end - start, [way.parts_of(place)[way.second.index] for place in range(way.first.size)]
    segments = [Segment(start, rank * count + start, length) for rank in row]
    yield from _ring.all_gather(work, way.first, source, target, way.first.as_placed(segments))
    blocks = []
    for other in range(way.second.size):
        ranks = [way.parts_of(place)[other] for place in range(way.first.size)]
        at, stride = ranks[0] * count + start, _stride(ranks) * count
        blocks.append(Segment(at, at, length, len(ranks), stride, stride))
    yield from _ring.all_gather(work, way.second, target, target, way.second.as_placed(blocks), placed=True)


def reduce_scatter(
    work: Work, way: Way, source: Any, target: Any, scratch: Any, start: int, end: int, count: int
) -> Stream:
    """Reduce the elements from `start` to `end` of every rank's part of `count`, and store those of this rank.

    `scratch` has room for one part of every rank, and for one more.
    """
    length = end - start
    blocks = []
    for place in range(way.first.size):
        ranks = way.parts_of(place)
        blocks.append(Segment(ranks[0] * count + start, start, length, len(ranks), _stride(ranks) * count, count))
    yield from _ring.reduce_scatter(
        work, way.first, source, scratch, scratch, way.first.as_placed(blocks), finish=False
    )
    segments = [Segment(other * count + start, start, length) for other in range(way.second.size)]
    spare = scratch + way.width * way.height * count
    yield from _ring.reduce_scatter(work, way.second, scratch, target, spare, way.second.as_placed(segments))


def _stride(ranks: Sequence[int]) -> int:
    return ranks[1] - ranks[0] if len(ranks) > 1 else 0


def all_reduce_time(cost: Cost, ways: int, wraps: bool) -> float:
    """Return the closed form of an all-reduce in both dimensions, cut into `ways` parts, in ns.

    Each part is 2(X - 1)(a + s/(X b)) + 2(Y - 1)(a + s/(X Y b)) for s = S/ways, X the dimension that it takes first.
    Parts that take the other first use other links at that time. Where a dimension does not wrap around, the message
    from its last rank to its first crosses X - 1 links, twice.
    """
    s = cost.nbytes / ways
    return max(
        2 * (_steps(cost, first, s / first, ways, wraps) + _steps(cost, second, s / cost.world, ways, wraps))
        for first, second in _orders(cost)
    )


def gather_time(cost: Cost, ways: int, wraps: bool) -> float:
    """Return the closed form of a reduce-scatter or an all-gather in both dimensions, cut into `ways` parts, in ns.

    For all-gather: (X - 1)(a + s/(X Y b)) and then (Y - 1)(a + s/(Y b)), s = S/ways; reduce-scatter is its reverse.
    """
    s = cost.nbytes / ways
    return max(
        _steps(cost, first, s / cost.world, ways, wraps) + _steps(cost, second, s / second, ways, wraps)
        for first, second in _orders(cost)
    )


def _orders(cost: Cost) -> tuple[tuple[int, int], tuple[int, int]]:
    width, height = cost.network.grid(cost.world)
    return (width, height), (height, width)


def _steps(cost: Cost, size: int, nbytes: float, ways: int, wraps: bool) -> float:
    """Return the time of a ring of `size` places in which a part sends `nbytes` per step.

    Two places have one link for both directions.
    """
    sharing = 2 if ways == 4 and size == 2 else 1
    way_back = 0.0 if wraps or size <= 2 else (size - 2) * cost.hop
    return (size - 1) * (cost.hop + sharing * nbytes / cost.bandwidth) + way_back
