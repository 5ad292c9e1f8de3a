"""Splitting a transfer into chunks: one memory each, at most so many bytes, rows of one descriptor gathered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import attrs

from kernbench_core.regions import Region


@attrs.frozen
class Chunk:
    """Name the node that owns a chunk, its physical byte ranges there, and their sum in bytes."""

    node: str
    regions: tuple[Region, ...]
    nbytes: int


def chunks(regions: Iterable[Region], chunk_bytes: int, owner: Callable[[int], str]) -> Iterator[Chunk]:
    """Yield the chunks of a transfer of physical `regions`, in order.

    Consecutive rows that `owner(address)` places in one memory are gathered until `chunk_bytes` (bytes)
    are reached; a longer row is cut. Regions without bytes are passed over.
    """
    node, held, room = "", list[Region](), chunk_bytes
    for region in regions:
        if not region.nbytes:
            continue
        found = owner(region.base)
        if held and found != node:
            yield Chunk(node, tuple(held), chunk_bytes - room)
            held, room = [], chunk_bytes
        node = found
        for piece in _pieces(region, chunk_bytes):
            if piece.nbytes > room:
                whole_rows = room // piece.row_bytes
                if whole_rows:
                    held.append(Region(piece.base, piece.row_bytes, whole_rows, piece.pitch))
                    room -= whole_rows * piece.row_bytes
                if held:
                    yield Chunk(node, tuple(held), chunk_bytes - room)
                    held, room = [], chunk_bytes
                rest = piece.base + whole_rows * piece.pitch
                piece = Region(rest, piece.row_bytes, piece.rows - whole_rows, piece.pitch)
            held.append(piece)
            room -= piece.nbytes
            if not room:
                yield Chunk(node, tuple(held), chunk_bytes)
                held, room = [], chunk_bytes
    if held:
        yield Chunk(node, tuple(held), chunk_bytes - room)


def _pieces(region: Region, most: int) -> Iterator[Region]:
    """Cut a region into pieces of at most `most` bytes, along its rows where they fit."""
    if region.nbytes <= most:
        yield region
    elif region.contiguous:
        for start in range(0, region.nbytes, most):
            yield Region(region.base + start, min(most, region.nbytes - start))
    elif region.row_bytes <= most:
        rows = most // region.row_bytes
        for first in range(0, region.rows, rows):
            count = min(rows, region.rows - first)
            yield Region(region.base + first * region.pitch, region.row_bytes, count, region.pitch)
    else:
        for row in range(region.rows):
            yield from _pieces(Region(region.base + row * region.pitch, region.row_bytes), most)
