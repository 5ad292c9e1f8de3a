"""The index behind one address space of the memory store: pages of entries, and what reads need of them.

An entry is one region of one write, filed under the pages that it touches. Newer entries hide older ones; an entry that
no newer one overlaps is *clean*, and clean entries share no byte with each other.
"""

from __future__ import annotations

from typing import Final

from kernbench_core.values.arrays import Shape
from kernbench_core.values.region import Region, ascending_pieces, compose, covers, intersect, runs, subtract
from kernbench_core.values.region_pages import Filed, RegionPages
from kernbench_core.values.value import OpId, Part, Value

_CACHE_LIMIT: Final = 1 << 16
_COMPACT_AT: Final = 64


class Write:
    """One write: the value, the regions that hold it in row-major order, and the op that wrote. It never changes."""

    # these are no attrs classes, for speed: every op makes some
    __slots__ = ("regions", "value", "writer")

    def __init__(self, regions: tuple[Region, ...], value: Value, writer: OpId | None) -> None:
        self.regions = regions
        self.value = value
        self.writer = writer


class WrittenRegion(Filed):
    """One region of a write; its linear bytes are the bytes from `offset` on of the value. It never changes."""

    __slots__ = ("offset", "sequence", "write")

    def __init__(self, region: Region, write: Write, offset: int, sequence: int) -> None:
        self.region = region
        self.write = write
        self.offset = offset
        self.sequence = sequence


class _Remembered:
    """What a read gave, and the entries that it is made of."""

    __slots__ = ("dtype", "shape", "used", "value", "writers")

    def __init__(
        self, value: Value, writers: tuple[OpId, ...], shape: Shape, dtype: str, used: tuple[WrittenRegion, ...]
    ) -> None:
        self.value = value
        self.writers = writers
        self.shape = shape
        self.dtype = dtype
        self.used = used


class SpaceIndex:
    """Everything that one space holds. `exact` finds a write by its regions."""

    __slots__ = ("_cache", "_clean", "_compact_at", "_hidden", "_pages", "_sequence", "exact")

    def __init__(self) -> None:
        self.exact: dict[tuple[Region, ...], Write] = {}
        self._pages = RegionPages()
        self._clean: set[WrittenRegion] = set()
        self._hidden: set[WrittenRegion] = set()
        self._cache: dict[tuple[Region, ...], _Remembered] = {}
        self._sequence = 0
        self._compact_at = _COMPACT_AT

    def insert(self, write: Write) -> None:
        """File a write: what it hides whole is dropped, what it hides in part is no longer clean."""
        offset = 0
        filed: list[WrittenRegion] = []
        met: set[Write] = set()
        for region in write.regions:
            for piece in ascending_pieces(region):
                entry = WrittenRegion(piece, write, offset, self._sequence)
                filed.append(entry)
                self._file(entry, met)
                self._sequence += 1
                offset += piece.rows * piece.row_bytes
        if self._clean.issuperset(filed):  # not so when the regions of one write overlap each other
            self.exact[write.regions] = write
        if len(self._hidden) > self._compact_at:
            self.compact()
            self._compact_at = 2 * len(self._hidden) + _COMPACT_AT

    def insert_part(self, write: Write, offset: int) -> None:
        """File a write of one ascending region, of a value from `offset` on; it is found by what it touches only."""
        self._file(WrittenRegion(write.regions[0], write, offset, self._sequence), set())
        self._sequence += 1

    def forget(self, region: Region) -> None:
        """Drop what an ascending region holds; of an entry that reaches outside, the outer rows are kept."""
        for old in self.touching(region):
            if self.exact.get(old.write.regions) is old.write:
                del self.exact[old.write.regions]
            clean = old in self._clean
            self._drop(old)
            for rest in subtract(old.region, [region]):
                for start, size in runs(rest):
                    row = Region(start, size)
                    kept = intersect(old.region, row)[0][0]
                    self._keep(WrittenRegion(row, old.write, old.offset + kept.base, old.sequence), clean)

    @property
    def stamp(self) -> int:
        """How many regions were written so far."""
        return self._sequence

    def stamp_of(self, region: Region) -> int:
        """Return what the stamp was after the last write to a region."""
        return max((e.sequence + 1 for piece in ascending_pieces(region) for e in self.touching(piece)), default=0)

    def touching(self, piece: Region) -> list[WrittenRegion]:
        """Return the entries that share a byte with an ascending region, newest first."""
        out: list[WrittenRegion] = self._pages.touching(piece)
        if len(out) > 1:
            out.sort(key=_newest_first)
        return out

    def collect(self, piece: Region, offset: int, parts: list[Part], used: list[WrittenRegion]) -> int:
        """Append the parts that make up an ascending region, painted in order; return how many bytes they cover.

        `offset` is where the linear bytes of the region start in the destination.
        """
        entries = self.touching(piece)
        clean = [e for e in entries if e in self._clean]
        first = len(parts)
        covered = self._take(clean, piece, offset, parts)
        used.extend(clean)
        if covered == piece.nbytes:
            return covered
        shaded = [e for e in entries if e not in self._clean]
        used.extend(shaded)
        if shaded and covers(shaded[0].region, piece):
            below: list[Part] = []
            self._take(shaded[:1], piece, offset, below)
            parts[first:first] = below
            return piece.nbytes
        left = subtract(piece, [e.region for e in clean])
        for entry in shaded:
            for rest in left:
                covered += _take_common(rest, entry, piece, offset, parts)
            left = [kept for rest in left for kept in subtract(rest, [entry.region])]
        return covered

    def cached(self, regions: tuple[Region, ...], shape: Shape, dtype: str) -> _Remembered | None:
        """Return what the same read gave before, if nothing it was made of has been overwritten since."""
        known = self._cache.get(regions)
        if known is None or known.shape != shape or known.dtype != dtype or not self._clean.issuperset(known.used):
            return None
        return known

    def remember(
        self,
        regions: tuple[Region, ...],
        shape: Shape,
        dtype: str,
        value: Value,
        writers: tuple[OpId, ...],
        used: list[WrittenRegion],
    ) -> None:
        """Keep the value of a read that was made of clean entries only, so that equal reads share one value."""
        if not self._clean.issuperset(used):
            return
        if len(self._cache) >= _CACHE_LIMIT:
            self._cache.clear()
        self._cache[regions] = _Remembered(value, writers, shape, dtype, tuple(used))

    def entries(self) -> list[WrittenRegion]:
        """Return every entry that is still filed, oldest first."""
        return sorted(self._clean | self._hidden, key=lambda e: e.sequence)

    def compact(self) -> None:
        """Drop the entries of which no byte is visible."""
        for entry in sorted(self._hidden, key=lambda e: e.sequence):
            newer = [e.region for e in self.touching(entry.region) if e.sequence > entry.sequence]
            if not subtract(entry.region, newer):
                self._drop(entry)
        self._cache = {k: v for k, v in self._cache.items() if self._clean.issuperset(v.used)}

    def fork(self) -> SpaceIndex:
        """Return a copy that shares entries and values but no container."""
        fork = SpaceIndex()
        fork.exact, fork._pages = dict(self.exact), self._pages.fork()
        fork._clean, fork._hidden, fork._cache = set(self._clean), set(self._hidden), dict(self._cache)
        fork._sequence, fork._compact_at = self._sequence, self._compact_at
        return fork

    def _file(self, entry: WrittenRegion, met: set[Write]) -> None:
        """File an entry; the writes in `met` were met by this write before, and are looked up by their regions once."""
        region = entry.region
        for old in self.touching(region):
            if old.write not in met:
                met.add(old.write)
                if self.exact.get(old.write.regions) is old.write:
                    del self.exact[old.write.regions]
            if covers(region, old.region):
                self._drop(old)
            elif old in self._clean:
                self._clean.discard(old)
                self._hidden.add(old)
        self._keep(entry, clean=True)

    def _keep(self, entry: WrittenRegion, clean: bool) -> None:
        """Put an entry on the pages that it touches."""
        (self._clean if clean else self._hidden).add(entry)
        self._pages.file(entry)

    def _drop(self, entry: WrittenRegion) -> None:
        self._clean.discard(entry)
        self._hidden.discard(entry)
        self._pages.drop(entry)

    def _take(self, entries: list[WrittenRegion], piece: Region, offset: int, parts: list[Part]) -> int:
        covered = 0
        for entry in entries:
            for at_piece, at_entry in intersect(piece, entry.region):
                parts.append(Part(at_piece.shifted(offset), entry.write.value, at_entry.shifted(entry.offset)))
                covered += at_piece.rows * at_piece.row_bytes
        return covered


def _take_common(rest: Region, entry: WrittenRegion, piece: Region, offset: int, parts: list[Part]) -> int:
    """Append what an entry holds of `rest`, a part of `piece`; return its bytes."""
    covered = 0
    for at_rest, _ in intersect(rest, entry.region):
        for _, common in compose(rest, at_rest):
            to, come = intersect(piece, common), intersect(entry.region, common)
            covered += common.nbytes
            if len(to) == 1 and len(come) == 1:
                pairs = [(to[0][0], come[0][0])]
            else:
                rows = [Region(start, size) for start, size in runs(common)]
                pairs = [(intersect(piece, row)[0][0], intersect(entry.region, row)[0][0]) for row in rows]
            parts.extend(Part(a.shifted(offset), entry.write.value, b.shifted(entry.offset)) for a, b in pairs)
    return covered


def _newest_first(entry: WrittenRegion) -> int:
    return -entry.sequence
