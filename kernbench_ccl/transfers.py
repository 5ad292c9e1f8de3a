"""The kernels of the API's own: messages from rank to rank, and copies between several tensors and one."""

from __future__ import annotations

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
