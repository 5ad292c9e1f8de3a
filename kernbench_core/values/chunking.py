"""Splitting a transfer into chunks: one memory each, at most so many bytes, rows of one descriptor gathered."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kernbench_core.values.region import Region


class Chunk:
    """Name the node that owns a chunk, its physical byte ranges there, and their sum in bytes. It never changes."""

    # no frozen attrs class, as regions are none: a run makes hundreds of thousands
    __slots__ = ("nbytes", "node", "regions")

    def __init__(self, node: str, regions: tuple[Region, ...], nbytes: int) -> None:
        self.node = node
        self.regions = regions
        self.nbytes = nbytes

    def __eq__(self, other: object) -> bool:
        if type(other) is not Chunk:
            return NotImplemented
        return (self.node, self.regions, self.nbytes) == (other.node, other.regions, other.nbytes)

    def __hash__(self) -> int:
        return hash((self.node, self.regions, self.nbytes))

    def __repr__(self) -> str:
        return f"Chunk(node={self.node!r}, regions={self.regions!r}, nbytes={self.nbytes})"


def chunks(regions: Iterable[Region], chunk_bytes: int, owner: Callable[[int], str]) -> list[Chunk]:
    """Return the chunks of a transfer of physical `regions`: the full ones as they fill up, then the rest.

    Rows that `owner(address)` places in one memory are gathered, in order, until `chunk_bytes` (bytes) are
    reached; a longer row is cut. Regions without bytes are passed over.
    """
    done: list[Chunk] = []
    filling: dict[str, _Filling] = {}
    for region in regions:
        nbytes = region.rows * region.row_bytes
        if nbytes:
            node = owner(region.base)
            chunk = filling.get(node)
            if chunk is None:
                chunk = filling[node] = _Filling(node, chunk_bytes)
            if nbytes < chunk.room:
                chunk.hold(region, nbytes)
            else:
                for piece in _pieces(region, chunk_bytes):
                    chunk.add(piece, done)
    for chunk in filling.values():
        if chunk.held:
            chunk.take(done)
    return done


class _Filling:
    """Gather the rows that are bound for one memory."""

    __slots__ = ("_most", "_pitch", "_rows", "held", "node", "room")

    def __init__(self, node: str, most: int) -> None:
        self.node = node
        self.held: list[Region] = []
        self.room = self._most = most
        #: Of the piece that is held last the rows, with those that continue it, and their pitch.
        self._rows = self._pitch = 0

    def add(self, piece: Region, done: list[Chunk]) -> None:
        """Take in a piece of at most a chunk; a chunk that it fills goes to `done`."""
        nbytes = piece.nbytes
        if nbytes > self.room:
            whole_rows = self.room // piece.row_bytes
            if whole_rows:
                first = Region(piece.base, piece.row_bytes, whole_rows, piece.pitch)
                self.hold(first, first.nbytes)
            self.take(done)
            rest = piece.base + whole_rows * piece.pitch
            piece = Region(rest, piece.row_bytes, piece.rows - whole_rows, piece.pitch)
            nbytes = piece.nbytes
        self.hold(piece, nbytes)
        if not self.room:
            self.take(done)

    def take(self, done: list[Chunk]) -> None:
        """Give the chunk that is held to `done`, and begin the next."""
        self._close()
        done.append(Chunk(self.node, tuple(self.held), self._most - self.room))
        self.held, self.room, self._rows = [], self._most, 0

    def hold(self, piece: Region, nbytes: int) -> None:
        """Hold a piece of that many bytes; a single row that continues the rows before it becomes one of them.

        A tile over many shards comes row by row, shard after shard: what lies in one memory is regular again.
        """
        self.room -= nbytes
        rows = self._rows
        if rows:
            if piece.rows == 1:
                last = self.held[-1]
                width = last.row_bytes
                pitch = self._pitch if rows > 1 else piece.base - last.base
                if piece.row_bytes == width and pitch >= width and piece.base == last.base + rows * pitch:
                    self._rows, self._pitch = rows + 1, pitch
                    return
            self._close()
        self.held.append(piece)
        self._rows, self._pitch = piece.rows, piece.pitch

    def _close(self) -> None:
        """Give the piece that is held last the rows that continue it."""
        last = self.held[-1]
        if self._rows != last.rows:
            self.held[-1] = Region(last.base, last.row_bytes, self._rows, self._pitch)


def _pieces(region: Region, most: int) -> Iterable[Region]:
    """Return a region in pieces of at most `most` bytes, along its rows where they fit."""
    base, width, rows, pitch = region.base, region.row_bytes, region.rows, region.pitch
    if rows * width <= most:
        return (region,)
    if region.contiguous:
        return _runs(base, rows * width, most)
    if width > most:
        return [piece for row in range(rows) for piece in _runs(base + row * pitch, width, most)]
    fit = most // width
    return [Region(base + first * pitch, width, min(fit, rows - first), pitch) for first in range(0, rows, fit)]


def _runs(base: int, nbytes: int, most: int) -> list[Region]:
    """Cut a run of bytes into pieces of at most `most` bytes."""
    return [Region(base + start, min(most, nbytes - start)) for start in range(0, nbytes, most)]
