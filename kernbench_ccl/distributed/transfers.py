"""The kernels of the API's own: messages from rank to rank, and copies between several tensors and one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from kernbench_ccl.contract import share


def send_share(x_ptr: Any, count: int, place: int, places: int, to: tuple[int, int], tile: int, tl: Any) -> None:
    """Send this PE's share of `count` elements to the PE at `to`, tile by tile, loading one ahead."""
    pieces = list(_pieces(*share(count, places, place), tile))
    loads = [tl.load(x_ptr + start, shape=(size,), wait=False) for start, size in pieces[:1]]
    for number in range(len(pieces)):
        x = loads.pop()
        if number + 1 < len(pieces):
            start, size = pieces[number + 1]
            loads.append(tl.load(x_ptr + start, shape=(size,), wait=False))
        tl.send(x, to)


def recv_share(x_ptr: Any, count: int, place: int, places: int, source: tuple[int, int], tile: int, tl: Any) -> None:
    """Receive what `send_share` sends, and store it."""
    for start, size in _pieces(*share(count, places, place), tile):
        tl.store(x_ptr + start, tl.recv((size,), x_ptr.dtype, source))


def exchange_messages(
    leaving: Sequence[PeerMessages], coming: Sequence[PeerMessages], place: int, places: int, depth: int, tl: Any
) -> None:
    """Send and receive this PE's share of messages, as `send_share` and `recv_share` do, of all peers at once.

    Messages of one peer are in order. Of each peer `depth` tiles are under way, and whichever is done is followed by
    the next: no peer that is late keeps another waiting, so that whatever the others do, in whatever order, this PE's
    part goes on as far as theirs does.
    """
    streams: list[_Stream] = [_Sends(tl, peer, _shares(parts, place, places)) for peer, parts in leaving]
    streams += [_Receipts(tl, peer, _shares(parts, place, places)) for peer, parts in coming]
    for _ in range(depth):
        for stream in streams:
            stream.start()
    while going := [stream for stream in streams if stream.under_way]:
        tl.wait_for_any([stream.first for stream in going])
        for stream in going:
            if stream.first.complete:
                stream.end()
                stream.start()


PeerMessages = tuple[tuple[int, int], Sequence[tuple[Any, int, int]]]
"""A peer as (rank, place), and the messages to it, or from it: pointer, elements, elements of a tile."""


class _Stream:
    """The messages to one peer, or from it: tiles that are still to come, and handles of those that are under way."""

    def __init__(self, tl: Any, peer: tuple[int, int], pieces: Iterator[tuple[Any, int]]) -> None:
        self.tl = tl
        self.peer = peer
        self.pieces = pieces
        self.under_way: deque[tuple[Any, Any]] = deque()

    @property
    def first(self) -> Any:
        """The command of the tile that is done first."""
        return self.under_way[0][1].command

    def start(self) -> None:
        """Set the next tile under way, if there is one."""
        raise NotImplementedError

    def end(self) -> None:
        """Deal with the first tile, which is done."""
        raise NotImplementedError


class _Sends(_Stream):
    """Tiles that are loaded, one ahead, and sent."""

    def __init__(self, tl: Any, peer: tuple[int, int], pieces: Iterator[tuple[Any, int]]) -> None:
        super().__init__(tl, peer, pieces)
        self._loaded = self._load()

    def _load(self) -> Any:
        found = next(self.pieces, None)
        return None if found is None else self.tl.load(found[0], shape=(found[1],), wait=False)

    def start(self) -> None:
        x, self._loaded = self._loaded, None
        if x is not None:
            self.under_way.append((None, self.tl.send(x, self.peer, wait=False)))
            self._loaded = self._load()

    def end(self) -> None:
        self.tl.wait(self.under_way.popleft()[1])


class _Receipts(_Stream):
    """Tiles that are received, and stored."""

    def start(self) -> None:
        found = next(self.pieces, None)
        if found is not None:
            pointer, size = found
            self.under_way.append((pointer, self.tl.recv((size,), pointer.dtype, self.peer, wait=False)))

    def end(self) -> None:
        self.tl.store(*self.under_way.popleft())


def _shares(messages: Sequence[tuple[Any, int, int]], place: int, places: int) -> Iterator[tuple[Any, int]]:
    """Yield (pointer, elements) of the tiles of a PE's share of messages."""
    for pointer, count, tile in messages:
        for start, size in _pieces(*share(count, places, place), tile):
            yield pointer + start, size


def join_parts(parts: Sequence[Any], whole_ptr: Any, count: int, tile: int, tl: Any) -> None:
    """Copy tensors of `count` elements, one behind the other, into one; each PE does its share of each."""
    for number, part_ptr in enumerate(parts):
        for start, size in _own(count, tile, tl):
            tl.store(whole_ptr + (number * count + start), tl.load(part_ptr + start, shape=(size,)))


def part_whole(whole_ptr: Any, parts: Sequence[Any], count: int, tile: int, tl: Any) -> None:
    """Copy one tensor out into tensors of `count` elements each; each PE does its share of each."""
    for number, part_ptr in enumerate(parts):
        for start, size in _own(count, tile, tl):
            tl.store(part_ptr + start, tl.load(whole_ptr + (number * count + start), shape=(size,)))


def _own(count: int, tile: int, tl: Any) -> Iterator[tuple[int, int]]:
    return _pieces(*share(count, tl.num_programs(0), tl.program_id(0)), tile)


def _pieces(start: int, end: int, tile: int) -> Iterator[tuple[int, int]]:
    """Yield (first element, number of elements) of the tiles from `start` to `end`."""
    for first in range(start, end, tile):
        yield first, min(tile, end - first)
