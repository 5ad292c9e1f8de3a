"""What most algorithms need: cutting into tiles, loading and receiving ahead of use, bounding what is on its way."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from attrs import frozen

from kernbench_ccl.contract import share

T = TypeVar("T")

LOADS_AHEAD = 4
"""Tiles of own data that are on their way from memory while one is used."""

RECEIVES_AHEAD = 1
"""Tiles that are received while the one before is used."""


@frozen
class Segment:
    """A run of `length` elements: where it begins in what is read, and in what is written."""

    source: int
    target: int
    length: int

    def piece(self, tile: tuple[int, int]) -> Piece:
        """Return the part of it that lies in a tile, counted from the segment's start; it may be empty."""
        start, end = min(tile[0], self.length), min(tile[1], self.length)
        return Piece(self.source + start, self.target + start, end - start)


@frozen
class Piece:
    """One tile of a segment: its place in what is read and in what is written, and its elements (0: nothing)."""

    source: int
    target: int
    length: int


def cut(start: int, end: int, parts: int) -> list[Segment]:
    """Cut the elements from `start` to `end` into segments that are read and written at the same place."""
    bounds = [share(end - start, parts, index) for index in range(parts)]
    return [Segment(start + low, start + low, high - low) for low, high in bounds]


def tiles(length: int, size: int) -> list[tuple[int, int]]:
    """Return the tiles of `size` elements (the last may have less) that `length` elements make."""
    return [(low, min(low + size, length)) for low in range(0, length, size)]


def rounds(length: int, size: int, held: int) -> Iterator[list[tuple[int, int]]]:
    """Yield the tiles of `length` elements, at most `held` of them at a time: what the scratchpad can keep."""
    every = tiles(length, size)
    for first in range(0, len(every), max(1, held)):
        yield every[first : first + max(1, held)]


def ahead(depth: int, made: Iterable[T]) -> Iterator[T]:
    """Yield what an iterator makes, having it make `depth` more than are used: loads, or receives, in advance."""
    waiting: deque[T] = deque()
    for thing in made:
        waiting.append(thing)
        if len(waiting) > depth:
            yield waiting.popleft()
    while waiting:
        yield waiting.popleft()


class Outbox:
    """Sends that are on their way, at most `limit` of them: `add` waits for the oldest when there are more."""

    def __init__(self, tl: Any, limit: int) -> None:
        self._tl = tl
        self._limit = limit
        self._sent: deque[Any] = deque()

    def add(self, sent: Any) -> None:
        """Note a send that was not waited for."""
        self._sent.append(sent)
        while len(self._sent) > self._limit:
            self._tl.wait(self._sent.popleft())

    def flush(self) -> None:
        """Wait until everything has left."""
        while self._sent:
            self._tl.wait(self._sent.popleft())


STEP = "step"
"""What a stream yields when it has received all of a step; it goes on when all streams of the rank have."""

Stream = Iterator[str | None]
"""A part of a PE's work: it yields whenever it has handled one more tile, and STEP at the end of a step."""


def run(tl: Any, rank: int, pe: int, n_pe: int, streams: Sequence[Stream]) -> None:
    """Run streams to their end, a tile of each in turn; after a step all of them and all PEs of the rank meet."""
    going, met = deque(streams), list[Stream]()
    while going:
        stream = going.popleft()
        try:
            (met if next(stream) == STEP else going).append(stream)
        except StopIteration:
            pass
        if met and not going:
            meet(tl, rank, pe, n_pe)
            going, met = deque(met), []


def copy(tl: Any, source: Any, target: Any, segment: Segment, finish: bool = False) -> None:
    """Copy a segment from `source` to `target` tile by tile, as its own result with `finish`."""
    call = tl.collective
    pieces = [segment.piece(tile) for tile in tiles(segment.length, call.tile)]
    loads = (tl.load(source + piece.source, shape=(piece.length,), wait=False) for piece in pieces)
    for piece, x in zip(pieces, ahead(LOADS_AHEAD, loads), strict=True):
        tl.store(target + piece.target, call.finish(tl, x) if finish else x)


def meet(tl: Any, rank: int, pe: int, n_pe: int) -> None:
    """Wait until all PEs of a rank are here: one-element tokens go up a binary tree of them, and down again."""
    if n_pe == 1:
        return
    dtype = tl.collective.dtype
    below = [child for child in (2 * pe + 1, 2 * pe + 2) if child < n_pe]
    for child in below:
        tl.recv((1,), dtype, (rank, child))
    token = tl.zeros((1,), dtype)
    if pe:
        above = (rank, (pe - 1) // 2)
        tl.send(token, above)
        tl.recv((1,), dtype, above)
    for child in below:
        tl.send(token, (rank, child))
