"""What most algorithms need: cutting into tiles, loading and receiving ahead of use, bounding what is on its way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from attrs import frozen

from kernbench_ccl.contract import share

__tracebackhide__ = True  # reports name the line of the algorithm

T = TypeVar("T")

LOADS_AHEAD = 4
"""Tiles of own data that are on their way from memory while one is used."""

RECEIVES_AHEAD = 1
"""Tiles that are received while the one before is used."""


Tile = tuple[int, int, int]
"""A row of a segment, and the elements of it from the second number to the third, not included."""


@frozen
class Segment:
    """Rows of `length` elements: where the first begins in what is read and in what is written.

    Rows follow each other after `source_stride` elements in what is read, `target_stride` in what is written.
    """

    source: int
    target: int
    length: int
    rows: int = 1
    source_stride: int = 0
    target_stride: int = 0

    def piece(self, tile: Tile) -> TilePiece:
        """Return the part of it that lies in a tile; it may be empty."""
        row, low, high = tile
        start, end = min(low, self.length), min(high, self.length)
        length = end - start if row < self.rows else 0
        return TilePiece(
            self.source + row * self.source_stride + start, self.target + row * self.target_stride + start, length
        )


class TilePiece(NamedTuple):
    """One tile of a segment: its place in what is read and in what is written, and its elements (0: nothing)."""

    source: int
    target: int
    length: int


def cut(start: int, end: int, parts: int) -> list[Segment]:
    """Cut the elements from `start` to `end` into segments that are read and written at the same place."""
    bounds = [share(end - start, parts, index) for index in range(parts)]
    return [Segment(start + low, start + low, high - low) for low, high in bounds]


def tiles(segments: Sequence[Segment], size: int) -> list[Tile]:
    """Return the tiles of at most `size` elements that the largest of these segments makes, row by row."""
    length, rows = max(s.length for s in segments), max(s.rows for s in segments)
    return [(row, low, min(low + size, length)) for row in range(rows) for low in range(0, length, size)]


def rounds(segments: Sequence[Segment], size: int, held: int) -> Iterator[list[Tile]]:
    """Yield these tiles, at most `held` of them at a time: what the scratchpad can keep."""
    every = tiles(segments, size)
    for first in range(0, len(every), held):
        yield every[first : first + held]


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

    def __init__(self, tl: Any, limit: int = 0) -> None:
        self._tl = tl
        self._limit = limit
        self._sent: deque[Any] = deque()

    def add(self, sent: Any, limit: int | None = None) -> None:
        """Note a send that was not waited for; `limit` is for this time another."""
        self._sent.append(sent)
        while len(self._sent) > (self._limit if limit is None else limit):
            self._tl.wait(self._sent.popleft())

    def flush(self) -> None:
        """Wait until everything has left."""
        while self._sent:
            self._tl.wait(self._sent.popleft())


STEP = "step"
"""What a stream yields when it has received all of a step; it goes on when all streams of the rank have."""

_ENDED: Final = "ended"

Stream = Iterator[str | None]
"""A part of a PE's work: it yields whenever it has handled one more tile, and STEP at the end of a step."""


def run(tl: Any, rank: int, pe: int, n_pe: int, streams: Sequence[Stream]) -> None:
    """Run streams to their end, a tile of each in turn; after a step all of them and all PEs of the rank meet."""
    going, met = deque(streams), list[Stream]()
    while going:
        stream = going.popleft()
        told = next(stream, _ENDED)
        if told != _ENDED:
            (met if told == STEP else going).append(stream)
        if met and not going:
            meet(tl, rank, pe, n_pe)
            going, met = deque(met), []


def copy(tl: Any, source: Any, target: Any, segment: Segment, finish: bool = False) -> None:
    """Copy a segment from `source` to `target` tile by tile, as its own result with `finish`."""
    call = tl.collective
    pieces = [segment.piece(tile) for tile in tiles([segment], call.tile)]
    loads = (tl.load(source + piece.source, shape=(piece.length,), wait=False) for piece in pieces)
    for piece, x in zip(pieces, ahead(LOADS_AHEAD, loads), strict=True):
        tl.store(target + piece.target, call.finish(tl, x) if finish else x)


@frozen
class Message:
    """One tile that goes to, or comes from, `peer`: where it lies, and its elements (0: there is none)."""

    peer: Any
    place: int
    length: int


Tiles = Mapping[tuple[int, int], Any]
"""Tiles in the scratchpad, by the element of a memory where each begins, and how many elements it has."""

NO_TILES: Final[Tiles] = MappingProxyType({})


def read(tl: Any, memory: Any, place: int, length: int, kept: Tiles) -> Any:
    """Return a tile of `memory`: the one that is kept, else one that is on its way."""
    x = kept.get((place, length))
    return tl.load(memory + place, shape=(length,), wait=False) if x is None else x


def due_after(lag: int, *messages: Sequence[Message]) -> range:
    """Return after which message each of the longest of these lists is due: after `lag` more."""
    return range(lag, lag + max(map(len, messages)))


def beats_due(sizes: Sequence[int], room: int) -> list[int]:
    """Return after which message of these sizes each is due: after as many more as there is `room` for, at least one.

    So small messages at the end of large ones are as far ahead as these in bytes, not in number.

    >>> beats_due([4, 4, 4, 1, 1, 1], 8)
    [2, 6, 6, 6, 6, 6]
    """
    due, last, under_way = list[int](), 0, 0
    for message in range(len(sizes)):
        if 0 < message <= last:
            under_way -= sizes[message]
        last = max(last, message)
        while last + 1 < len(sizes) and (last == message or under_way + sizes[last + 1] <= room):
            last += 1
            under_way += sizes[last]
        due.append(last if last + 1 < len(sizes) else len(sizes))
    return due


def exchange(
    tl: Any,
    memory: Any,
    leaving: Sequence[Message],
    coming: Sequence[Message],
    due: Sequence[int],
    kept: Tiles = NO_TILES,
    meanwhile: Callable[[], None] | None = None,
) -> Iterator[tuple[Message, Any]]:
    """Send tiles of `memory` in order, and yield those that come, in order: number b after `due[b]` was sent.

    What one PE sends as its message number b must be what the other receives as its number b, and `due` the same for
    both. Then whoever is furthest behind is never waited for by those it waits for: no cycle can form, however short
    the queues are. Messages one after another from the same place are loaded once, those of tiles that are `kept` not
    at all. `meanwhile` is called when sends are as far ahead as they go, before the first receipt.
    """
    dtype = tl.collective.dtype
    outbox = Outbox(tl)
    places = (key for key, _ in groupby((m.place, m.length) for m in leaving if m.length))
    loads = ahead(LOADS_AHEAD, (read(tl, memory, place, n, kept) for place, n in places))
    arrivals = ahead(RECEIVES_AHEAD, (tl.recv((m.length,), dtype, m.peer, wait=False) for m in coming if m.length))
    held, x = (-1, 0), None
    received, oldest = 0, 0
    for beat in range(max(len(leaving), due[len(coming) - 1] + 1 if coming else 0)):
        while oldest < min(beat, len(leaving)) and due[oldest] < beat:
            oldest += 1
        if beat < len(leaving) and leaving[beat].length:
            message = leaving[beat]
            if held != (message.place, message.length):
                held, x = (message.place, message.length), next(loads)
            outbox.add(tl.send(x, message.peer, wait=False), limit=beat - oldest + 1)
        if meanwhile is not None and beat == due[0]:
            meanwhile()
        while received < len(coming) and due[received] <= beat:
            if coming[received].length:
                yield coming[received], next(arrivals)
            received += 1
    outbox.flush()


def meet(tl: Any, rank: int, pe: int, n_pe: int, groups: int = 1) -> None:
    """Wait until all PEs of a rank are here: one-element tokens go up a binary tree of them, and down again.

    With `groups`, PEs whose places differ by a multiple of it wait for each other only.
    """
    places = range(pe % groups, n_pe, groups)
    place, dtype = pe // groups, tl.collective.dtype
    if len(places) == 1:
        return
    below = [(rank, places[child]) for child in (2 * place + 1, 2 * place + 2) if child < len(places)]
    for child in below:
        tl.recv((1,), dtype, child)
    token = tl.zeros((1,), dtype)
    if place:
        above = (rank, places[(place - 1) // 2])
        tl.send(token, above)
        tl.recv((1,), dtype, above)
    for child in below:
        tl.send(token, child)
