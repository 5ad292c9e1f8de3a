"""Messages straight from every rank to every other: what the direct and pairwise algorithms run.

In round i rank r sends to r + i and receives from r - i, so that at any time every rank is sent to by one other. Tiles
are sent by tile number first (`direct`: all peers share the links of a rank at the same time) or peer by peer
(`pairwise`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kernbench_ccl.algorithms._tiles import (
    LOADS_AHEAD,
    Message,
    Segment,
    ahead,
    beats_due,
    copy,
    due_after,
    exchange,
    tiles,
)
from kernbench_ccl.contract import share


def peers(world: int) -> int:
    """Return from how many others a rank (or only the root) receives: from all of them."""
    return world - 1


def rounds_of(tl: Any, longest: int, world: int, by_peer: bool = False) -> list[tuple[int, tuple[int, int, int]]]:
    """Return (round, tile) of every message, in order, for blocks of at most `longest` elements."""
    every = tiles([Segment(0, 0, longest)], tl.collective.tile)
    if by_peer:
        return [(i, tile) for i in range(1, world) for tile in every]
    return [(i, tile) for tile in every for i in range(1, world)]


def due(tl: Any, order: Sequence[tuple[int, tuple[int, int, int]]]) -> list[int]:
    """Return after which message of an order each is due, so that links are filled."""
    return beats_due([high - low for _, (_, low, high) in order], tl.collective.window_elements)


def message(peer: int, block: Segment, tile: tuple[int, int, int], read: bool) -> Message:
    """Make the message of a tile of a block; `read`: it lies where the block is read, else where it is written."""
    piece = block.piece(tile)
    return Message(peer, piece.source if read else piece.target, piece.length)


def all_to_all(
    tl: Any,
    source: Any,
    target: Any,
    rank: int,
    world: int,
    leaving: Sequence[Segment],
    coming: Sequence[Segment],
    longest: int,
    end_round: Callable[[], None] | None = None,
) -> None:
    """Send block j of `leaving` to rank j, and store what comes from rank j as block j of `coming`.

    With `end_round` peer by peer: step by step it is called when the blocks of a round are there.
    """
    own = leaving[rank]
    copy(tl, source, target, Segment(own.source, coming[rank].target, own.length))
    every = rounds_of(tl, longest, world, by_peer=end_round is not None)
    alone = end_round is not None and not tl.collective.pipeline
    for order in [[one for one in every if one[0] == i] for i in range(1, world)] if alone else [every]:
        to = [message((rank + i) % world, leaving[(rank + i) % world], tile, True) for i, tile in order]
        of = [message((rank - i) % world, coming[(rank - i) % world], tile, False) for i, tile in order]
        for arrived, x in exchange(tl, source, to, of, due(tl, order)):
            tl.store(target + arrived.place, x)
        if end_round is not None and alone:
            end_round()


def blocks_of(
    counts: Sequence[Sequence[int]] | None, count: int, rank: int, world: int, pe: int, n_pe: int
) -> tuple[list[Segment], list[Segment], int]:
    """Return a PE's share of each block that a rank sends and receives in an all-to-all, and the longest share."""
    if counts is None:
        start, end = share(count, n_pe, pe)
        even = [Segment(other * count + start, other * count + start, end - start) for other in range(world)]
        return even, even, end - start
    longest = max(share(n, n_pe, pe)[1] - share(n, n_pe, pe)[0] for row in counts for n in row)
    return _laid_out(counts[rank], pe, n_pe), _laid_out([row[rank] for row in counts], pe, n_pe), longest


def _laid_out(lengths: Sequence[int], pe: int, n_pe: int) -> list[Segment]:
    """Return the PE's share of blocks that lie one behind the other."""
    found, first = [], 0
    for length in lengths:
        start, end = share(length, n_pe, pe)
        found.append(Segment(first + start, first + start, end - start))
        first += length
    return found


def reduce_scatter(tl: Any, source: Any, target: Any, rank: int, world: int, segments: Sequence[Segment]) -> None:
    """Send segment j to rank j, and store the reduction of everyone's segment of this rank."""
    own = segments[rank]
    longest = max(s.length for s in segments)
    order = rounds_of(tl, longest, world)
    to = [message((rank + i) % world, segments[(rank + i) % world], tile, True) for i, tile in order]
    of = [message((rank - i) % world, own, tile, False) for i, tile in order]
    _reduce(tl, source, target, own, world - 1, exchange(tl, source, to, of, due(tl, order)))


def reduce(tl: Any, source: Any, target: Any, others: Sequence[int], own: Segment) -> None:
    """Store the reduction of this rank's block and of those that all others send."""
    of = [message(peer, own, tile, False) for tile in tiles([own], tl.collective.tile) for peer in others]
    _reduce(tl, source, target, own, len(others), exchange(tl, source, [], of, due_after(0, of)))


def _reduce(
    tl: Any, source: Any, target: Any, own: Segment, others: int, arrivals: Iterator[tuple[Message, Any]]
) -> None:
    """Reduce each tile of a block with one of every other rank, and store it."""
    call = tl.collective
    pieces = [piece for tile in tiles([own], call.tile) if (piece := own.piece(tile)).length]
    loads = ahead(LOADS_AHEAD, (tl.load(source + p.source, shape=(p.length,), wait=False) for p in pieces))
    for piece, x in zip(pieces, loads, strict=True):
        for _ in range(others):
            x = call.combine(tl, next(arrivals)[1], x)
        tl.store(target + piece.target, call.finish(tl, x))
    for _ in arrivals:
        raise AssertionError("messages beyond the last tile")


def all_gather(tl: Any, source: Any, target: Any, rank: int, world: int, segments: Sequence[Segment]) -> None:
    """Send this rank's segment to everyone, and store everyone else's."""
    longest = max(s.length for s in segments)
    order = rounds_of(tl, longest, world)
    to = [message((rank + i) % world, segments[rank], tile, True) for i, tile in order]
    of = [message((rank - i) % world, segments[(rank - i) % world], tile, False) for i, tile in order]
    for arrived, x in exchange(tl, source, to, of, due(tl, order)):
        tl.store(target + arrived.place, x)


def collect(tl: Any, sources: Sequence[int], blocks: Sequence[Segment], handle: Callable[[Message, Any], None]) -> None:
    """Receive block i from `sources[i]`, tile by tile of all of them, and have each tile handled."""
    every = tiles(blocks, tl.collective.tile)
    of = [message(peer, block, tile, False) for tile in every for peer, block in zip(sources, blocks, strict=True)]
    for arrived, x in exchange(tl, None, [], of, due_after(0, of)):
        handle(arrived, x)


def spread(tl: Any, source: Any, peers: Sequence[int], blocks: Sequence[Segment]) -> None:
    """Send block i to `peers[i]`, tile by tile of all of them."""
    every = tiles(blocks, tl.collective.tile)
    order = [(number, tile) for tile in every for number in range(len(blocks))]
    to = [message(peers[number], blocks[number], tile, True) for number, tile in order]
    for _ in exchange(tl, source, to, [], due(tl, order)):
        raise AssertionError("nothing comes here")
