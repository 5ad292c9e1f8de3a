"""Collectives over two dimensions of ranks, one ring after the other: what the mesh and torus algorithms run.

A vector is cut into parts that take different ways at the same time: along rows first or along columns first, up or
down. The parts are dealt to the PEs of a rank, so that each PE does one thing after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from kernbench_ccl.algorithms import _forms, _ring
from kernbench_ccl.algorithms._ring import Ring, RingWork
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


def all_reduce(work: RingWork, rings: Sequence[Ring], source: Any, target: Any, start: int, end: int) -> Stream:
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


def all_gather(work: RingWork, way: Way, source: Any, target: Any, start: int, end: int, count: int) -> Stream:
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
    work: RingWork, way: Way, source: Any, target: Any, scratch: Any, start: int, end: int, count: int
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


def all_reduce_time(cost: Cost, ways: int, wraps: bool) -> float | str:
    """Return the closed form of an all-reduce in both dimensions, cut into `ways` parts, in ns.

    Of each part of s = S/ways go s/X in X - 1 steps along the X places of the dimension that it takes first, s/(X Y) in
    2(Y - 1) steps along the other, and s/X in X - 1 steps back.
    """
    parts = []
    for first, second in _orders(cost):
        out, across = [(first, 1 / first.size)] * (first.size - 1), [(second, 1 / cost.world)] * (2 * second.size - 2)
        parts.append([*out, *across, *out])
    return _lockstep(cost, parts, ways, wraps)


def gather_time(cost: Cost, ways: int, wraps: bool) -> float | str:
    """Return the closed form of a reduce-scatter or an all-gather in both dimensions, cut into `ways` parts, in ns.

    All-gather: of each part of s = S/ways go s/(X Y) in X - 1 steps along the dimension that it takes first, and s/Y in
    Y - 1 steps along the other; a reduce-scatter is its reverse.
    """
    parts = []
    for first, second in _orders(cost):
        parts.append([(first, 1 / cost.world)] * (first.size - 1) + [(second, 1 / second.size)] * (second.size - 1))
    return _lockstep(cost, parts, ways, wraps)


@frozen
class _Dimension:
    name: str
    size: int


def _orders(cost: Cost) -> tuple[tuple[_Dimension, _Dimension], tuple[_Dimension, _Dimension]]:
    width, height = cost.network.grid(cost.world)
    rows, columns = _Dimension("row", width), _Dimension("column", height)
    return (rows, columns), (columns, rows)


def _lockstep(cost: Cost, parts: Sequence[Sequence[tuple[_Dimension, float]]], ways: int, wraps: bool) -> float | str:
    """Return the time of steps in which all parts take a step each, in ns: the longest row of messages.

    A sentence for a pipelined call whose parts do not keep step by themselves and get into each other's way: on a mesh,
    and where rows and columns differ.

    A rank's step ends when it has the messages of all parts, so the row may change between dimensions. Parts that go
    along the same dimension at a step share its links; four ways use both directions of them, which two places have but
    one of. Where a dimension does not wrap around, its last place sends to its first over the links that lead back: of
    messages along X places every X-th is such a one.
    """
    width, height = cost.network.grid(cost.world)
    if cost.pipeline and cost.world > 4 and min(width, height) > 1 and not (wraps and width == height):
        return _forms.SHARED
    latest = {0: 0.0}
    """When a row ends, by how many of its messages went along rows."""
    for number, step in enumerate(zip(*parts, strict=True)):
        load: dict[_Dimension, float] = {}
        for dimension, fraction in step:
            sharing = 2 if ways == 4 and dimension.size == 2 else 1
            load[dimension] = load.get(dimension, 0.0) + sharing * fraction * cost.nbytes / ways / cost.bandwidth
        before, latest = latest, {}
        for in_rows, ended in before.items():
            for dimension, took in load.items():
                is_row = dimension.name == "row"
                earlier = in_rows if is_row else number - in_rows
                back = 0 if wraps or earlier % dimension.size else max(0, dimension.size - 2)
                after = in_rows + is_row
                latest[after] = max(latest.get(after, 0.0), ended + (1 + back) * cost.hop + took)
    return max(latest.values())
