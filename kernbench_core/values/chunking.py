"""Splitting a transfer into chunks: one memory each, at most so many bytes, rows of one descriptor gathered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import attrs

from kernbench_core.values.region import Region


@attrs.frozen
class Chunk:
    """Name the node that owns a chunk, its physical byte ranges there, and their sum in bytes."""

    node: str
    regions: tuple[Region, ...]
    nbytes: int


def chunks(regions: Iterable[Region], chunk_bytes: int, owner: Callable[[int], str]) -> Iterator[Chunk]:
    """Yield the chunks of a transfer of physical `regions`: the full ones as they fill up, then the rest.

    Rows that `owner(address)` places in one memory are gathered, in order, until `chunk_bytes` (bytes) are
    reached; a longer row is cut. Regions without bytes are passed over.
    """
    filling: dict[str, _Filling] = {}
    for region in regions:
        if region.nbytes:
            node = owner(region.base)
            chunk = filling.get(node)
            if chunk is None:
                chunk = filling[node] = _Filling(node, chunk_bytes)
            for piece in _pieces(region, chunk_bytes):
                yield from chunk.add(piece)
    for chunk in filling.values():
        if chunk.held:
            yield chunk.take()


class _Filling:
    """Gather the rows that are bound for one memory."""

    __slots__ = ("_most", "held", "node", "room")

    def __init__(self, node: str, most: int) -> None:
        self.node = node
        self.held: list[Region] = []
        self.room = self._most = most

    def add(self, piece: Region) -> Iterator[Chunk]:
        """Take in a piece of at most a chunk; yield the chunk that it fills."""
        if piece.nbytes > self.room:
            whole_rows = self.room // piece.row_bytes
            if whole_rows:
                self._hold(Region(piece.base, piece.row_bytes, whole_rows, piece.pitch))
            yield self.take()
            rest = piece.base + whole_rows * piece.pitch
            piece = Region(rest, piece.row_bytes, piece.rows - whole_rows, piece.pitch)
        self._hold(piece)
        if not self.room:
            yield self.take()

    def take(self) -> Chunk:
        """Give the chunk that is held, and begin the next."""
        chunk = Chunk(self.node, tuple(self.held), self._most - self.room)
        self.held, self.room = [], self._most
        return chunk

    def _hold(self, piece: Region) -> None:
        """Hold a piece; a single row that continues the rows before it becomes one of them.

        A tile over many shards comes row by row, shard after shard: what lies in one memory is regular again.
        """
        self.room -= piece.nbytes
        held = self.held
        if held and piece.rows == 1:
            last = held[-1]
            pitch = last.pitch if last.rows > 1 else piece.base - last.base
            continues = last.row_bytes == piece.row_bytes and piece.base == last.base + last.rows * pitch
            if continues and pitch >= piece.row_bytes:
                held[-1] = Region(last.base, last.row_bytes, last.rows + 1, pitch)
                return
        held.append(piece)


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
