"""Strided byte regions, and the arithmetic that the memory store and the values need on them.

A region is `rows` runs of `row_bytes` bytes, `pitch` bytes apart. Its *linear* bytes are the runs one after
another: byte `i` of them lies at `base + (i // row_bytes) * pitch + i % row_bytes`. Everything here is pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter

from kernbench_core.values.limits import LIMIT_AS_FLOAT, require_addresses

Pair = tuple["Region", "Region"]
#: How many holes are taken out one after the other; more are sorted.
_FEW_HOLES = 4
_FAR = LIMIT_AS_FLOAT


class Region:
    """A strided byte descriptor: `rows` runs of `row_bytes` bytes from `base`, `pitch` apart. It never changes.

    It lies below byte 2**63, as addresses do, and not below -2**62: an OutOfBoundsError says so of others.
    """

    # no frozen attrs class, for speed (tools/compare_trees.py): a run makes hundreds of thousands
    __slots__ = ("_hash", "base", "pitch", "row_bytes", "rows")

    def __init__(self, base: int, row_bytes: int, rows: int = 1, pitch: int = 0) -> None:
        try:
            self.base = base
            self.row_bytes = row_bytes
            self.rows = rows
            self.pitch = pitch
        except OverflowError:  # compiled
            require_addresses(base, row_bytes, rows, pitch)
        self._hash = -1
        # no less than the last byte; in floats, as what is too large must not become small
        reach = 1.0 * self.base + 1.0 * self.rows * (self.row_bytes | self.pitch | 1)
        if reach >= _FAR or self.pitch < 0 or self.base < 0:
            require_addresses(base, row_bytes, rows, pitch)

    def __hash__(self) -> int:
        found = self._hash
        if found == -1:
            found = self._hash = hash((self.base, self.row_bytes, self.rows, self.pitch))
        return found

    def __eq__(self, other: object) -> bool:
        if type(other) is not Region:
            return NotImplemented
        return (
            self.base == other.base
            and self.row_bytes == other.row_bytes
            and self.rows == other.rows
            and self.pitch == other.pitch
        )

    def __repr__(self) -> str:
        return f"Region(base={self.base}, row_bytes={self.row_bytes}, rows={self.rows}, pitch={self.pitch})"

    def __reduce__(self) -> tuple[type[Region], tuple[int, int, int, int]]:
        return Region, (self.base, self.row_bytes, self.rows, self.pitch)

    @property
    def nbytes(self) -> int:
        """Bytes that the region holds, gaps not counted."""
        return self.rows * self.row_bytes

    @property
    def end(self) -> int:
        """One past the last byte (for a negative pitch: of the first row)."""
        return _end(self)

    @property
    def start(self) -> int:
        """The lowest byte."""
        span = (self.rows - 1) * self.pitch
        return self.base + (span if span < 0 else 0)

    @property
    def contiguous(self) -> bool:
        """Whether the rows follow each other without a gap."""
        return self.rows == 1 or self.pitch == self.row_bytes

    @property
    def ascending(self) -> bool:
        """Whether the rows do not overlap and go upwards, so that no byte is held twice."""
        return self.rows == 1 or self.pitch >= self.row_bytes

    def shifted(self, offset: int) -> Region:
        """Return the same region `offset` bytes further."""
        return Region(self.base + offset, self.row_bytes, self.rows, self.pitch) if offset else self

    def row(self, index: int) -> Region:
        """Return one row as a region of its own."""
        return Region(self.base + index * self.pitch, self.row_bytes)

    def __str__(self) -> str:
        if self.contiguous:
            return f"0x{self.base:x}..0x{self.base + self.nbytes:x}"
        return f"0x{self.base:x} ({self.rows} rows of {self.row_bytes} B every {self.pitch} B)"


def _end(region: Region) -> int:
    """Return one past the last byte; a function, as a compiled one is called without making objects of integers."""
    span = (region.rows - 1) * region.pitch
    return region.base + region.row_bytes + (span if span > 0 else 0)


def normal(region: Region) -> Region:
    """Return the same bytes in the one form that equal regions share (no rows where none are needed)."""
    if region.rows == 1:
        return region if region.pitch == 0 else Region(region.base, region.row_bytes)
    if region.pitch == region.row_bytes:
        return Region(region.base, region.nbytes)
    return region


def ascending_pieces(region: Region) -> tuple[Region, ...]:
    """Split a region whose rows repeat, overlap or go downwards into one-row regions; others stay whole."""
    if region.rows == 1 or region.pitch >= region.row_bytes:
        return (normal(region),)
    return tuple([region.row(i) for i in range(region.rows)])


def total_bytes(regions: Iterable[Region]) -> int:
    """Return the bytes of all regions together."""
    found = 0
    for region in regions:
        found += region.rows * region.row_bytes
    return found


def overlaps(a: Region, b: Region) -> bool:
    """Tell whether two ascending regions share a byte. Constant time unless their pitches differ."""
    # said without properties or a function: hazards compare each use with all that is near
    a_base, b_base = a.base, b.base
    a_end, b_end = a_base + (a.rows - 1) * a.pitch + a.row_bytes, b_base + (b.rows - 1) * b.pitch + b.row_bytes
    if a_base >= b_end or b_base >= a_end:
        return False
    if a.rows == 1 or a.pitch == a.row_bytes:
        return b.rows == 1 or b.pitch == b.row_bytes or _run_meets(a_base, a_end, b)
    if b.rows == 1 or b.pitch == b.row_bytes:
        return _run_meets(b_base, b_end, a)
    if a.pitch == b.pitch:
        shift, column = divmod(b_base - a_base, a.pitch)
        if column < a.row_bytes and -b.rows < shift < a.rows:
            return True
        return column + b.row_bytes > a.pitch and -b.rows <= shift < a.rows - 1
    few, many = (a, b) if a.rows <= b.rows else (b, a)
    for row in range(few.rows):
        start = few.base + row * few.pitch
        if _run_meets(start, start + few.row_bytes, many):
            return True
    return False


def bounds(regions: Iterable[Region]) -> tuple[int, int]:
    """Return the lowest address of regions, of whatever order their rows are, and one past the highest."""
    low = min(region.base + min(0, (region.rows - 1) * region.pitch) for region in regions)
    return low, max(map(_end, regions))


def meet(ours: Iterable[Region], theirs: Iterable[Region]) -> bool:
    """Tell whether some byte is in regions of both, of whatever order their rows are."""
    others = [piece for region in theirs for piece in ascending_pieces(region)]
    return any(overlaps(piece, other) for region in ours for piece in ascending_pieces(region) for other in others)


def covers(outer: Region, inner: Region) -> bool:
    """Tell whether every byte of `inner` is in `outer`; may say no for two unlike pitches."""
    if inner.base < outer.base or _end(inner) > _end(outer):
        return False
    if outer.rows == 1 or outer.pitch == outer.row_bytes:
        return True
    offset, column = divmod(inner.base - outer.base, outer.pitch)
    if column + inner.row_bytes > outer.row_bytes:
        return False
    return inner.rows == 1 or (inner.pitch % outer.pitch == 0 and offset < outer.rows)


def intersect(a: Region, b: Region) -> list[Pair]:
    """Return the common bytes of two ascending regions, as pairs (linear bytes of a, linear bytes of b)."""
    a_end, b_end = _end(a), _end(b)
    if a.base >= b_end or b.base >= a_end:
        return []
    if b.rows == 1 or b.pitch == b.row_bytes:
        return [(lin, found.shifted(-b.base)) for lin, found in _clip(a, b.base, b_end)]
    if a.rows == 1 or a.pitch == a.row_bytes:
        return [(found.shifted(-a.base), lin) for lin, found in _clip(b, a.base, a_end)]
    if a.pitch == b.pitch:
        return _same_pitch(a, b)
    if a.rows <= b.rows:
        return [p for i in range(a.rows) for p in _row_pairs(i, a, b)]
    return [(y, x) for i in range(b.rows) for x, y in _row_pairs(i, b, a)]


def compose(outer: Region, inner: Region) -> list[Pair]:
    """Follow `inner`, a region of the linear bytes of `outer`, to where those bytes lie.

    Returns pairs (linear bytes of inner, bytes where outer lies) in ascending order of the first.
    """
    width = outer.row_bytes
    if outer.rows == 1 or outer.pitch == width:
        return [(Region(0, inner.rows * inner.row_bytes), inner.shifted(outer.base))]
    row, column = divmod(inner.base, width)
    base = outer.base + row * outer.pitch + column
    if inner.rows == 1:
        return _compose_run(outer, inner.base, inner.row_bytes, 0)
    if inner.pitch % width == 0 and column + inner.row_bytes <= width:
        pitch = inner.pitch // width * outer.pitch
        return [(Region(0, inner.rows * inner.row_bytes), Region(base, inner.row_bytes, inner.rows, pitch))]
    return [
        pair
        for i in range(inner.rows)
        for pair in _compose_run(outer, inner.base + i * inner.pitch, inner.row_bytes, i * inner.row_bytes)
    ]


def subtract(region: Region, holes: Iterable[Region]) -> list[Region]:
    """Return what is left of an ascending region when the bytes of `holes` are taken out."""
    holes = list(holes)
    left = [region]
    if len(holes) > _FEW_HOLES and region.contiguous:
        left = _gaps(region, [run for hole in holes if _is_runs(hole) for run in runs(hole)])
        holes = [hole for hole in holes if not _is_runs(hole)]
    for hole in holes:
        left = [kept for piece in left for kept in _without(piece, hole)]
    return left


def _is_runs(hole: Region) -> bool:
    """Whether what a hole leaves of a run are runs, and not one region of many gaps."""
    return hole.rows <= 2 or hole.contiguous


def _gaps(region: Region, holes: list[tuple[int, int]]) -> list[Region]:
    """Take (address, bytes) out of a run: one look at each of them, instead of one at every piece that is left."""
    out: list[Region] = []
    end = region.base + region.nbytes
    cursor, cut = region.base, False
    for base, nbytes in sorted(holes):
        if base >= end:
            break
        if base + nbytes > cursor:
            if base > cursor:
                out.append(Region(cursor, base - cursor))
            cursor, cut = base + nbytes, True
    if cursor < end:
        out.append(Region(cursor, end - cursor) if cut else region)
    return out


def runs(region: Region) -> Iterator[tuple[int, int]]:
    """Yield (address, bytes) of each contiguous run, in linear order."""
    if region.contiguous:
        return iter(((region.base, region.nbytes),))
    return iter([(region.base + row * region.pitch, region.row_bytes) for row in range(region.rows)])


def _run_meets(start: int, stop: int, region: Region) -> bool:
    """Tell whether [start, stop) shares a byte with an ascending region of several rows."""
    first = max(0, -((region.base + region.row_bytes - 1 - start) // region.pitch))
    return first < region.rows and region.base + first * region.pitch < stop


def _clip(region: Region, start: int, stop: int) -> list[Pair]:
    """Cut an ascending region to [start, stop): pairs (its linear bytes, the absolute bytes)."""
    width, pitch = region.row_bytes, region.pitch
    if region.rows == 1 or pitch == width:
        low, high = max(start, region.base), min(stop, region.base + region.rows * width)
        return [(Region(low - region.base, high - low), Region(low, high - low))] if low < high else []
    if start <= region.base and _end(region) <= stop:
        return [(Region(0, region.rows * width), region)]
    first = max(0, -((region.base + width - 1 - start) // pitch))
    last = min(region.rows, -((region.base - stop) // pitch))
    out: list[Pair] = []
    full_from, full_to = first, last
    if first < last and region.base + first * pitch < start:
        out.append(_cut_row(region, first, start, stop))
        full_from += 1
    tail = full_to > full_from and region.base + (full_to - 1) * pitch + width > stop
    full_to -= tail
    if full_to > full_from:
        rows = full_to - full_from
        absolute = normal(Region(region.base + full_from * pitch, width, rows, pitch))
        out.append((Region(full_from * width, rows * width), absolute))
    if tail:
        out.append(_cut_row(region, full_to, start, stop))
    return out


def _cut_row(region: Region, index: int, start: int, stop: int) -> Pair:
    base = region.base + index * region.pitch
    low, high = max(start, base), min(stop, base + region.row_bytes)
    return Region(index * region.row_bytes + low - base, high - low), Region(low, high - low)


def _same_pitch(a: Region, b: Region) -> list[Pair]:
    """Return the common rectangles of two strided regions of one pitch; there are at most two."""
    pitch = a.pitch
    shift, column = divmod(b.base - a.base, pitch)
    out: list[Pair] = []
    for step, offset in ((shift, column), (shift + 1, column - pitch)):
        low, high = max(0, offset), min(a.row_bytes, offset + b.row_bytes)
        first, last = max(0, step), min(a.rows, b.rows + step)
        if low < high and first < last:
            rows, width = last - first, high - low
            of_a = normal(Region(first * a.row_bytes + low, width, rows, a.row_bytes))
            out.append((of_a, normal(Region((first - step) * b.row_bytes + low - offset, width, rows, b.row_bytes))))
    return out


def _row_pairs(index: int, a: Region, b: Region) -> list[Pair]:
    """Return the common bytes of row `index` of a, and b, linear in each."""
    start = a.base + index * a.pitch
    offset = index * a.row_bytes - start
    return [(absolute.shifted(offset), lin) for lin, absolute in _clip(b, start, start + a.row_bytes)]


def _compose_run(outer: Region, start: int, nbytes: int, done: int) -> list[Pair]:
    """Follow one contiguous run of the linear bytes of a strided region; `done` linear bytes came before."""
    width, pitch = outer.row_bytes, outer.pitch
    out: list[Pair] = []
    while nbytes:
        row, column = divmod(start, width)
        if column == 0 and nbytes >= width:
            rows = nbytes // width
            take, found = rows * width, normal(Region(outer.base + row * pitch, width, rows, pitch))
        else:
            take = min(nbytes, width - column)
            found = Region(outer.base + row * pitch + column, take)
        out.append((Region(done, take), found))
        start, nbytes, done = start + take, nbytes - take, done + take
    return out


def _without(region: Region, hole: Region) -> list[Region]:
    """Return an ascending region less one hole, as regions in the region's own address space."""
    pairs = intersect(region, hole)
    if not pairs:
        return [region]
    taken = sorted([lin for lin, _ in pairs], key=attrgetter("base"))
    out: list[Region] = []
    for rest in _linear_rest(region.nbytes, region.row_bytes, taken):
        out.extend(normal(where) for _, where in compose(region, rest))
    return out


def _linear_rest(nbytes: int, width: int, taken: list[Region]) -> list[Region]:
    """Return the linear bytes of [0, nbytes) that no region of `taken` holds."""
    left = [Region(0, nbytes)]
    for lin in taken:
        left = [piece for old in left for piece in _linear_without(old, lin)]
    return left


def _linear_without(run: Region, hole: Region) -> list[Region]:
    pairs = intersect(run, hole)
    if not pairs:
        return [run]
    if not run.contiguous:
        return [p for start, size in runs(run) for p in _linear_without(Region(start, size), hole)]
    out: list[Region] = []
    cursor = run.base
    for absolute in sorted([lin.shifted(run.base) for lin, _ in pairs], key=attrgetter("base")):
        if absolute.base > cursor:
            out.append(Region(cursor, absolute.base - cursor))
        if absolute.rows > 1:
            gap = absolute.pitch - absolute.row_bytes
            out.append(normal(Region(absolute.base + absolute.row_bytes, gap, absolute.rows - 1, absolute.pitch)))
        cursor = absolute.end
    if cursor < run.base + run.nbytes:
        out.append(Region(cursor, run.base + run.nbytes - cursor))
    return out


def linked(dst: Region, at_dst: Region, src: Region, at_src: Region) -> Iterator[Pair]:
    """Join linear bytes of `dst` to linear bytes of `src`, row by row where their rows do not match.

    `at_dst` and `at_src` hold the same number of bytes; the pairs are (where in memory of dst, where of src).
    """
    to, come = compose(dst, at_dst), compose(src, at_src)
    if len(to) == 1 and len(come) == 1:
        yield to[0][1], come[0][1]
        return
    left = [run for _, region in to for run in runs(region)]
    right = [run for _, region in come for run in runs(region)]
    i = j = done_i = done_j = 0
    while i < len(left) and j < len(right):
        size = min(left[i][1] - done_i, right[j][1] - done_j)
        yield Region(left[i][0] + done_i, size), Region(right[j][0] + done_j, size)
        done_i, done_j = done_i + size, done_j + size
        if done_i == left[i][1]:
            i, done_i = i + 1, 0
        if done_j == right[j][1]:
            j, done_j = j + 1, 0


def linear_at(regions: Iterable[Region], position: int) -> int:
    """Return the address of linear byte `position` of some regions, which are taken one after the other."""
    for region in regions:
        if position < region.nbytes:
            row, column = divmod(position, region.row_bytes)
            return region.base + row * region.pitch + column
        position -= region.nbytes
    raise ValueError(f"position must be inside the regions, not {position} bytes past their end; give one inside.")
