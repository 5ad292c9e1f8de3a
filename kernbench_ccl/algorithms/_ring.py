"""Reduce-scatter, all-gather and all-reduce along one ring of PEs: what the ring, grid and hierarchical algorithms run.

A ring has as many places as segments; each place ends a reduce-scatter with the segment of its own number. A stream is
a generator that has handled one more tile whenever it yields, so that several streams can run in turn on one PE.

Pipelined, as many tiles of each segment as the scratchpad holds make a round; in a round a tile of step s + 1 is sent
as soon as that tile of step s is there and reduced, and tiles never touch memory on their way. A PE has at most one
tile more under way than a segment of a round has: then whoever is furthest behind always finds that its successor has
received what it waits to send, so no cycle can form, however short the queues are.

Step by step (`pipeline` off), a whole segment is received and reduced, and all PEs of the rank meet, before the first
send of the next step. Partial results wait in memory, so that a segment may be larger than the scratchpad.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from attrs import evolve, frozen

from kernbench_ccl.algorithms._tiles import (
    LOADS_AHEAD,
    RECEIVES_AHEAD,
    STEP,
    Outbox,
    Segment,
    Stream,
    Tile,
    TilePiece,
    ahead,
    copy,
    rounds,
    tiles,
)
from kernbench_ccl.contract import Collective

Peer = int | tuple[int, int]


@frozen
class Ring:
    """A PE's view of a ring: its place, how many places there are, and what it calls the PEs after and before it."""

    place: int
    size: int
    nxt: Peer
    prv: Peer
    order: tuple[int, ...] | None = None  # who is at each place, where places are not numbered as ranks are

    @property
    def index(self) -> int:
        """The number, in its dimension, of who is at this place."""
        return self.place if self.order is None else self.order[self.place]

    def as_placed(self, segments: Sequence[Segment]) -> Sequence[Segment]:
        """Return segments, given by rank, in the order of the ring's places."""
        return segments if self.order is None else [segments[rank] for rank in self.order]


def ring_of(order: Sequence[Peer], place: int) -> Ring:
    """Make the ring that visits peers in this order, as the PE at `place` sees it."""
    size = len(order)
    return Ring(place, size, order[(place + 1) % size], order[(place - 1) % size])


def ring_of_ranks(call: Collective, rank: int) -> Ring:
    """Make the ring of all ranks, along links of the network where such a way round exists."""
    order = call.network.ring_order(call.world)
    return evolve(ring_of(order, order.index(rank)), order=order)


def both_ways(call: Collective, rank: int) -> list[Ring]:
    """Return the ring of all ranks in both directions; only one of them where there are no more than two ranks."""
    up = ring_of_ranks(call, rank)
    if up.size <= 2:
        return [up]
    first, *others = up.order or ()
    return [up, Ring(-up.place % up.size, up.size, up.prv, up.nxt, (first, *reversed(others)))]


@frozen
class RingWork:
    """What the streams of one PE share: the language, and the part of the scratchpad that each may take."""

    tl: Any
    streams: int = 1

    @property
    def held(self) -> int:
        """Tiles of a round: half of what may be held, as a tile may be received, reduced and sent at once."""
        held: int = self.tl.collective.held_tiles
        return max(1, held // (2 * self.streams))


def all_reduce(work: RingWork, ring: Ring, source: Any, target: Any, segments: Sequence[Segment]) -> Stream:
    """Reduce all segments over a ring and give every place all of them."""
    if ring.size == 1:
        copy(work.tl, source, target, segments[0], finish=True)
    elif work.tl.collective.pipeline:
        yield from _streamed_all_reduce(work, ring, source, target, segments)
    else:
        yield from _stepped_reduce_scatter(work, ring, source, target, target, segments, finish=True)
        yield from _stepped_all_gather(work, ring, target, segments)


def reduce_scatter(
    work: RingWork, ring: Ring, source: Any, target: Any, partial: Any, segments: Sequence[Segment], finish: bool = True
) -> Stream:
    """Reduce all segments over a ring; place i stores segment i at its target.

    Step by step, `partial` is where partial results wait: `target` where all segments have a place of their own there,
    else memory for one segment, whose targets then all begin alike.
    """
    if ring.size == 1:
        copy(work.tl, source, target, segments[0], finish)
    elif work.tl.collective.pipeline:
        yield from _streamed_reduce_scatter(work, ring, source, target, segments, finish)
    else:
        yield from _stepped_reduce_scatter(work, ring, source, target, partial, segments, finish)


def all_gather(
    work: RingWork, ring: Ring, source: Any, target: Any, segments: Sequence[Segment], placed: bool = False
) -> Stream:
    """Give every place all segments; place i reads segment i at its source. `placed`: it is at its target already."""
    if not placed and (ring.size == 1 or not work.tl.collective.pipeline):
        copy(work.tl, source, target, segments[ring.place])
    if ring.size == 1:
        return
    if work.tl.collective.pipeline:
        yield from _streamed_all_gather(work, ring, source, target, segments, placed)
    else:
        yield from _stepped_all_gather(work, ring, target, segments)


# Pipelined ---------------------------------------------------------------------------------------------


def _steps(ring: Ring, first: int, count: int) -> list[int]:
    """Return the segments that a place handles in `count` steps: `first` places before its own, then one more each."""
    return [(ring.place - first - step) % ring.size for step in range(count)]


class _Round:
    """The pieces of segments in the tiles of a round, worked out once: as many for every rank, so some may be empty."""

    def __init__(self, segments: Sequence[Segment], part: Sequence[Tile]) -> None:
        self._segments, self._part = segments, part
        self._known: dict[int, list[TilePiece]] = {}

    def of(self, index: int) -> list[TilePiece]:
        """Return those of a segment."""
        found = self._known.get(index)
        if found is None:
            segment = self._segments[index]
            found = self._known[index] = [segment.piece(tile) for tile in self._part]
        return found

    def along(self, order: Iterable[int]) -> Iterator[TilePiece]:
        """Yield those of segments in this order."""
        return chain.from_iterable(map(self.of, order))


def _loads(tl: Any, source: Any, pieces: Iterator[TilePiece]) -> Iterator[Any]:
    return ahead(LOADS_AHEAD, (tl.load(source + p.source, shape=(p.length,), wait=False) for p in pieces if p.length))


def _arrivals(tl: Any, ring: Ring, pieces: Iterator[TilePiece]) -> Iterator[Any]:
    dtype = tl.collective.dtype
    return ahead(RECEIVES_AHEAD, (tl.recv((p.length,), dtype, ring.prv, wait=False) for p in pieces if p.length))


def _streamed_all_reduce(work: RingWork, ring: Ring, source: Any, target: Any, segments: Sequence[Segment]) -> Stream:
    tl, call, last = work.tl, work.tl.collective, ring.size - 1
    outbox = Outbox(tl, work.held + 1)
    for pieces in (_Round(segments, part) for part in rounds(segments, call.tile, work.held)):
        own = _loads(tl, source, pieces.along(_steps(ring, 1, ring.size)))
        arrivals = _arrivals(tl, ring, pieces.along(_steps(ring, 2, 2 * last)))
        for piece in pieces.along(_steps(ring, 1, 1)):
            if piece.length:
                outbox.add(tl.send(next(own), ring.nxt, wait=False))
            yield None
        for step, segment in enumerate(_steps(ring, 2, last), 1):
            for piece in pieces.of(segment):
                if piece.length:
                    x = call.combine(tl, next(arrivals), next(own))
                    if step == last:
                        x = call.finish(tl, x)
                    outbox.add(tl.send(x, ring.nxt, wait=False))
                    if step == last:
                        tl.store(target + piece.target, x)
                yield None
        for step, segment in enumerate(_steps(ring, 1, last), 1):
            for piece in pieces.of(segment):
                if piece.length:
                    x = next(arrivals)
                    if step < last:
                        outbox.add(tl.send(x, ring.nxt, wait=False))
                    tl.store(target + piece.target, x)
                yield None
    outbox.flush()


def _streamed_reduce_scatter(
    work: RingWork, ring: Ring, source: Any, target: Any, segments: Sequence[Segment], finish: bool
) -> Stream:
    tl, call, last = work.tl, work.tl.collective, ring.size - 1
    outbox = Outbox(tl, work.held + 1)
    for pieces in (_Round(segments, part) for part in rounds(segments, call.tile, work.held)):
        own = _loads(tl, source, pieces.along(_steps(ring, 1, ring.size)))
        arrivals = _arrivals(tl, ring, pieces.along(_steps(ring, 2, last)))
        for piece in pieces.along(_steps(ring, 1, 1)):
            if piece.length:
                outbox.add(tl.send(next(own), ring.nxt, wait=False))
            yield None
        for step, segment in enumerate(_steps(ring, 2, last), 1):
            for piece in pieces.of(segment):
                if piece.length:
                    x = call.combine(tl, next(arrivals), next(own))
                    if step < last:
                        outbox.add(tl.send(x, ring.nxt, wait=False))
                    else:
                        tl.store(target + piece.target, call.finish(tl, x) if finish else x)
                yield None
    outbox.flush()


def _streamed_all_gather(
    work: RingWork, ring: Ring, source: Any, target: Any, segments: Sequence[Segment], placed: bool
) -> Stream:
    tl, call, last = work.tl, work.tl.collective, ring.size - 1
    outbox = Outbox(tl, work.held + 1)
    for pieces in (_Round(segments, part) for part in rounds(segments, call.tile, work.held)):
        own = _loads(tl, source, pieces.along([ring.place]))
        arrivals = _arrivals(tl, ring, pieces.along(_steps(ring, 1, last)))
        for piece in pieces.along([ring.place]):
            if piece.length:
                x = next(own)
                outbox.add(tl.send(x, ring.nxt, wait=False))
                if not placed:
                    tl.store(target + piece.target, x)
            yield None
        for step, segment in enumerate(_steps(ring, 1, last), 1):
            for piece in pieces.of(segment):
                if piece.length:
                    x = next(arrivals)
                    if step < last:
                        outbox.add(tl.send(x, ring.nxt, wait=False))
                    tl.store(target + piece.target, x)
                yield None
    outbox.flush()


# Step by step ------------------------------------------------------------------------------------------


def _stepped_reduce_scatter(
    work: RingWork, ring: Ring, source: Any, target: Any, partial: Any, segments: Sequence[Segment], finish: bool
) -> Stream:
    tl, call, last = work.tl, work.tl.collective, ring.size - 1
    every = tiles(segments, call.tile)
    for step, (sent, got) in enumerate(zip(_steps(ring, 1, last), _steps(ring, 2, last), strict=True), 1):
        fresh = step == 1
        leaving = [(p.source if fresh else p.target, p.length) for p in _Round(segments, every).along([sent])]
        own = _loads(tl, source, _Round(segments, every).along([got]))
        outbox = Outbox(tl, work.held + 1)
        arrived = _exchange(work, ring, outbox, source if fresh else partial, leaving, segments[got], every)
        for piece, x in arrived:
            if piece is not None:
                x = call.combine(tl, x, next(own))
                if step == last:
                    tl.store(target + piece.target, call.finish(tl, x) if finish else x)
                else:
                    tl.store(partial + piece.target, x)
            yield None
        yield from _end_of_step(outbox)


def _stepped_all_gather(work: RingWork, ring: Ring, target: Any, segments: Sequence[Segment]) -> Stream:
    last = ring.size - 1
    every = tiles(segments, work.tl.collective.tile)
    for sent, got in zip(_steps(ring, 0, last), _steps(ring, 1, last), strict=True):
        leaving = [(p.target, p.length) for p in _Round(segments, every).along([sent])]
        outbox = Outbox(work.tl, work.held + 1)
        for piece, x in _exchange(work, ring, outbox, target, leaving, segments[got], every):
            if piece is not None:
                work.tl.store(target + piece.target, x)
            yield None
        yield from _end_of_step(outbox)


def _end_of_step(outbox: Outbox) -> Stream:
    """Wait for this step's sends when every stream of the PE has received all of the step."""
    yield STEP
    outbox.flush()


def _exchange(
    work: RingWork,
    ring: Ring,
    outbox: Outbox,
    memory: Any,
    leaving: Sequence[tuple[int, int]],
    got: Segment,
    every: Sequence[Tile],
) -> Iterator[tuple[TilePiece | None, Any]]:
    """Send tiles from memory and yield those of another segment as they come, sends being some tiles ahead.

    They are as far ahead as a round has tiles, or all of a segment. Of several streams of a PE the longest takes the
    first turn, so that its last send, too, is before any receipt.
    """
    tl = work.tl
    loads = ahead(LOADS_AHEAD, (tl.load(memory + start, shape=(n,), wait=False) for start, n in leaving if n))
    coming = [got.piece(tile) for tile in every]
    arrivals = _arrivals(tl, ring, iter(coming))
    lead = min(work.held, len(every))
    for beat in range(len(every) + lead):
        if beat < len(leaving) and leaving[beat][1]:
            outbox.add(tl.send(next(loads), ring.nxt, wait=False))
        late = beat - lead
        if late >= 0 and coming[late].length:
            yield coming[late], next(arrivals)
        else:
            yield None, None
