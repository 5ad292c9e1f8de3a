"""Recursive halving and doubling among a power of two of members: reduce-scatter, all-gather, and both.

Member m exchanges halves of what it still has with m ^ n/2, then m ^ n/4, and so on: a reduce-scatter by halving; the
opposite order, each time sending all that it has, is an all-gather by doubling. Segment i ends at member i.

A segment's distance from a member, i ^ m, says everything: a segment at distance e leaves in the step of e's highest
bit. Segments are handled by falling distance in the first half and by rising distance in the second, which is the
order of both sides of every exchange, so that a tile of the next step leaves as soon as it is reduced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attrs import frozen

from kernbench_ccl.algorithms._tiles import (
    LOADS_AHEAD,
    Message,
    Outbox,
    Segment,
    Tile,
    TilePiece,
    ahead,
    beats_due,
    exchange,
    read,
    rounds,
    tiles,
)
from kernbench_ccl.contract import Collective
from kernbench_core.values.dtypes import itemsize


@frozen
class Cube:
    """A member's view of all members: its number, how many there are, and the rank of each."""

    member: int
    size: int
    rank_of: Callable[[int], int]

    def partner(self, distance: int) -> int:
        """Return the rank of the member at a distance."""
        return self.rank_of(self.member ^ distance)

    def pieces(self, segments: Sequence[Segment], distances: Sequence[int], part: Sequence[Tile]) -> list[TilePiece]:
        """Return the tiles of the segments at these distances, empty ones too."""
        return [segments[self.member ^ distance].piece(tile) for distance in distances for tile in part]


def tile_size(tl: Any, members: int) -> int:
    """Return the elements of a message: less than a tile where the scratchpad does not hold one for every member."""
    call: Collective = tl.collective
    fitting = call.held_bytes // (itemsize(call.dtype) * members)
    return max(1, min(call.tile, fitting))


def parts_of(tl: Any, cube: Cube, segments: Sequence[Segment]) -> Iterator[list[Tile]]:
    """Yield the tiles of each segment that are handled together, such that the scratchpad holds them for all."""
    size = tile_size(tl, cube.size)
    held = tl.collective.held_bytes // (itemsize(tl.collective.dtype) * size * cube.size)
    return rounds(segments, size, max(1, held))


def outbox_of(tl: Any, cube: Cube, part: Sequence[Tile]) -> Outbox:
    """Make an outbox that has room for everything that two steps send."""
    return Outbox(tl, cube.size * len(part))


def own_tiles(tl: Any, cube: Cube, source: Any, segments: Sequence[Segment], part: Sequence[Tile]) -> Iterator[Any]:
    """Load this member's own tiles in the order that `halve` uses them."""
    every = cube.pieces(segments, range(cube.size - 1, -1, -1), part)
    return ahead(LOADS_AHEAD, (tl.load(source + p.source, shape=(p.length,), wait=False) for p in every if p.length))


def halve(
    tl: Any, cube: Cube, own: Iterator[Any], segments: Sequence[Segment], part: Sequence[Tile], outbox: Outbox
) -> list[Any]:
    """Reduce-scatter these tiles of all segments; return the finished tiles of this member's segment (None: empty)."""
    call, dtype = tl.collective, tl.collective.dtype
    if cube.size == 1:
        return [call.finish(tl, next(own)) if p.length else None for p in cube.pieces(segments, [0], part)]
    step = cube.size // 2
    for piece in cube.pieces(segments, range(cube.size - 1, step - 1, -1), part):
        if piece.length:
            outbox.add(tl.send(next(own), cube.partner(step), wait=False))
    kept: Iterator[Any] = own
    while step:
        left: list[Any] = []
        for distance in range(step - 1, -1, -1):
            for piece in cube.pieces(segments, [distance], part):
                if not piece.length:
                    continue
                x = call.combine(tl, tl.recv((piece.length,), dtype, cube.partner(step)), next(kept))
                if distance >= step // 2 > 0:
                    outbox.add(tl.send(x, cube.partner(step // 2), wait=False))
                else:
                    left.append(x)
        kept, step = iter(left), step // 2
    return [call.finish(tl, next(kept)) if p.length else None for p in cube.pieces(segments, [0], part)]


def double(
    tl: Any,
    cube: Cube,
    finished: Sequence[Any],
    target: Any,
    segments: Sequence[Segment],
    part: Sequence[Tile],
    outbox: Outbox,
    also: int | None = None,
) -> None:
    """All-gather these tiles of all segments and store them; rank `also` is sent every tile, too."""
    dtype = tl.collective.dtype
    held: list[Any] = []

    def keep(piece: TilePiece, x: Any, following: int) -> None:
        if following < cube.size:
            outbox.add(tl.send(x, cube.partner(following), wait=False))
        if also is not None:
            outbox.add(tl.send(x, also, wait=False))
        tl.store(target + piece.target, x)
        held.append(x)

    for piece, x in zip(cube.pieces(segments, [0], part), finished, strict=True):
        if piece.length:
            keep(piece, x, 1)
    step = 1
    while step < cube.size:
        if 2 * step < cube.size:
            for x in held:
                outbox.add(tl.send(x, cube.partner(2 * step), wait=False))
        for piece in cube.pieces(segments, range(step, 2 * step), part):
            if piece.length:
                keep(piece, tl.recv((piece.length,), dtype, cube.partner(step)), 2 * step)
        step *= 2


# Step by step ------------------------------------------------------------------------------------------


class Kept:
    """Tiles that a step leaves for the next ones, in half of what may be held; others wait in memory.

    A tile that is here takes no way through the fabric, where messages of whoever is ahead may be in front of it. For
    the same reason results that are here are stored when the next step has sent what it can.
    """

    def __init__(self, tl: Any) -> None:
        self._tl, self._most = tl, max(1, tl.collective.held_tiles // 2)
        self.tiles: dict[tuple[int, int], Any] = {}
        self._results: list[tuple[Any, Any]] = []

    def leave(self, memory: Any, message: Message, x: Any) -> None:
        """Keep the tile of a message, or write it to `memory`."""
        if not self._keep(message.place, message.length, x):
            self._tl.store(memory + message.place, x)

    def result(self, memory: Any, place: int, length: int, x: Any) -> None:
        """Keep a tile that is to stand in `memory`, and store it at the next `settle`; without room now."""
        if self._keep(place, length, x):
            self._results.append((memory + place, x))
        else:
            self._tl.store(memory + place, x)

    def settle(self) -> None:
        """Store the results that are to be stored."""
        for pointer, x in self._results:
            self._tl.store(pointer, x)
        self._results.clear()

    def take(self, memory: Any, messages: Sequence[Message]) -> Iterator[Any]:
        """Yield the tiles of messages in order, and keep them no longer; those of `memory` are loaded ahead."""
        return ahead(LOADS_AHEAD, (self._taken(memory, message) for message in messages if message.length))

    def drop(self, messages: Sequence[Message]) -> None:
        """Keep the tiles of these messages no longer."""
        for message in messages:
            self.tiles.pop((message.place, message.length), None)

    def _keep(self, place: int, length: int, x: Any) -> bool:
        if len(self.tiles) >= self._most:
            return False
        self.tiles[place, length] = x
        return True

    def _taken(self, memory: Any, message: Message) -> Any:
        x = read(self._tl, memory, message.place, message.length, self.tiles)
        self.drop([message])
        return x


def stepped_halve(
    tl: Any,
    cube: Cube,
    source: Any,
    partial: Any,
    target: Any,
    segments: Sequence[Segment],
    kept: Kept,
    end_step: Callable[[], None],
) -> None:
    """Reduce-scatter whole segments; partial results that are not kept wait in `partial`, at places as they are read.

    What the last step reduces is this member's result, which `kept` is to settle at its target.
    """
    call, every = tl.collective, tiles(segments, tl.collective.tile)
    finished = [piece for piece in cube.pieces(segments, [0], every) if piece.length]
    if cube.size == 1:
        for piece in finished:
            tl.store(target + piece.target, call.finish(tl, tl.load(source + piece.source, shape=(piece.length,))))
    step, memory = cube.size // 2, source
    while step:
        leaving = _messages(cube, segments, range(2 * step - 1, step - 1, -1), every, step, reading=True)
        coming = _messages(cube, segments, range(step - 1, -1, -1), every, step, reading=True)
        own, done = kept.take(memory, coming), iter(finished)
        due = _due(tl, step, every)
        for message, x in exchange(tl, memory, leaving, coming, due, kept.tiles):
            x = call.combine(tl, x, next(own))
            if step > 1:
                kept.leave(partial, message, x)
                continue
            piece = next(done)
            kept.result(target, piece.target, piece.length, call.finish(tl, x))
        kept.drop(leaving)
        memory, step = partial, step // 2
        end_step()


def stepped_double(
    tl: Any, cube: Cube, target: Any, segments: Sequence[Segment], kept: Kept, end_step: Callable[[], None]
) -> None:
    """All-gather whole segments, which `kept` is to settle; this member's is at its target already, or kept."""
    every = tiles(segments, tl.collective.tile)
    step = 1
    while step < cube.size:
        leaving = _messages(cube, segments, range(step), every, step, reading=False)
        coming = _messages(cube, segments, range(step, 2 * step), every, step, reading=False)
        due = _due(tl, step, every)
        for message, x in exchange(tl, target, leaving, coming, due, kept.tiles, kept.settle):
            tl.wait(x)
            kept.result(target, message.place, message.length, x)
        step *= 2
        end_step()


def _due(tl: Any, segments: int, every: Sequence[Tile]) -> list[int]:
    """Return after which of the messages of so many segments each is due, so that links are filled."""
    return beats_due([high - low for _ in range(segments) for _, low, high in every], tl.collective.window_elements)


def _messages(
    cube: Cube,
    segments: Sequence[Segment],
    distances: Sequence[int],
    every: Sequence[Tile],
    step: int,
    *,
    reading: bool,
) -> list[Message]:
    peer = cube.partner(step)
    pieces = cube.pieces(segments, distances, every)
    return [Message(peer, p.source if reading else p.target, p.length) for p in pieces]
