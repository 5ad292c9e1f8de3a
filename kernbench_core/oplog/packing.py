"""Columns of numbers that take little room: the last ones as they come, older ones packed in blocks.

A block keeps how far each number is above the least one, or each number in as many bytes as it needs, whichever is
less. Readers take runs of rows; the blocks that were unpacked last stay at hand.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol, overload

import numpy as np

from kernbench_core.units import EXACT_NS, GRID_NS

NumberArray = np.ndarray[Any, Any]
#: NumberArray that are unpacked for one that is asked for, and rows that are walked over at once.
_WINDOW: Final = 4096
CHUNK: Final = 1 << 17
#: Blocks that stay unpacked.
_AT_HAND: Final = 4
_WIDTHS: Final = (np.uint8, np.uint16, np.uint32, np.uint64)


class NumberColumn:
    """NumberArray of one type code of `array`, to be appended to; `tail` holds the last of them."""

    def __init__(self, tail: array[Any]) -> None:
        self.tail = tail
        self.append: Callable[[Any], None] = tail.append
        self.extend: Callable[[Any], None] = tail.extend
        self.dtype = np.dtype(tail.typecode)
        #: How many numbers are not in the tail.
        self.older = 0
        self._window: NumberArray = np.empty(0, self.dtype)
        self._window_start = 0

    def settle(self) -> None:
        """Put the tail where older numbers are."""
        raise NotImplementedError

    def _older(self, start: int, stop: int) -> NumberArray:
        """Return some of the numbers that are not in the tail."""
        raise NotImplementedError

    def __len__(self) -> int:
        return self.older + len(self.tail)

    @overload
    def __getitem__(self, at: int) -> Any: ...

    @overload
    def __getitem__(self, at: slice) -> NumberArray: ...

    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            start, stop, _ = at.indices(len(self))
            return self._run(start, max(start, stop))
        if at < 0:
            at += len(self)
        if at >= self.older:
            return self.tail[at - self.older]
        offset = at - self._window_start
        if not 0 <= offset < len(self._window):
            self._window_start = at - at % _WINDOW
            self._window = self._older(self._window_start, min(self._window_start + _WINDOW, self.older))
            offset = at - self._window_start
        return self._window[offset].item()

    def __iter__(self) -> Iterator[Any]:
        for start in range(0, len(self), CHUNK):
            yield from self._run(start, min(start + CHUNK, len(self))).tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NumberArray:
        return self._run(0, len(self)).astype(dtype or self.dtype, copy=False)

    def take(self, rows: NumberArray) -> NumberArray:
        """Return the numbers at `rows`, which lie close together as a rule."""
        if not len(rows):
            return np.empty(0, self.dtype)
        low, high = int(rows.min()), int(rows.max()) + 1
        found: NumberArray = self._run(low, high)[rows - low]
        return found

    def _run(self, start: int, stop: int) -> NumberArray:
        if start >= self.older:
            return np.array(self.tail[start - self.older : stop - self.older], self.dtype)
        if stop <= self.older:
            return self._older(start, stop)
        tail = np.array(self.tail[: stop - self.older], self.dtype)
        return np.concatenate([self._older(start, self.older), tail])


class PackedColumn(NumberColumn):
    """NumberArray in memory, the older ones in packed blocks."""

    def __init__(self, tail: array[Any]) -> None:
        super().__init__(tail)
        self._blocks: list[PackedBlock] = []
        self._starts: list[int] = []
        self._at_hand: dict[int, NumberArray] = {}

    def settle(self) -> None:
        """Pack the tail as a block."""
        if self.tail:
            self._blocks.append(packed(np.array(self.tail, self.dtype)))
            self._starts.append(self.older)
            self.older += len(self.tail)
            del self.tail[:]

    def _older(self, start: int, stop: int) -> NumberArray:
        parts = [np.empty(0, self.dtype)]
        at = bisect_right(self._starts, start) - 1
        while start < stop:
            first, numbers = self._starts[at], self._unpacked(at)
            parts.append(numbers[start - first : stop - first])
            start, at = first + len(numbers), at + 1
        return parts[1] if len(parts) == 2 else np.concatenate(parts)

    def _unpacked(self, at: int) -> NumberArray:
        found = self._at_hand.get(at)
        if found is None:
            if len(self._at_hand) >= _AT_HAND:
                del self._at_hand[next(iter(self._at_hand))]
            found = self._at_hand[at] = self._blocks[at].unpacked(self.dtype)
        return found


class PackedBlock(Protocol):
    """Some numbers, packed."""

    def unpacked(self, dtype: np.dtype[Any]) -> NumberArray:
        """Return the numbers."""


class _Plain:
    """NumberArray as they are."""

    __slots__ = ("_numbers",)

    def __init__(self, numbers: NumberArray) -> None:
        self._numbers = numbers

    def unpacked(self, dtype: np.dtype[Any]) -> NumberArray:
        """Return the numbers."""
        return self._numbers


class _Above:
    """How far each number is above `least`; None where all are the same `count` times."""

    __slots__ = ("_count", "_least", "_offsets")

    def __init__(self, least: int, offsets: NumberArray | None, count: int) -> None:
        self._least = least
        self._offsets = offsets
        self._count = count

    def unpacked(self, dtype: np.dtype[Any]) -> NumberArray:
        """Return the numbers."""
        if self._offsets is None:
            return np.full(self._count, self._least, dtype)
        # in 64 bits, as the distance from the least may be more than half of what the type holds
        return (self._offsets.astype(np.int64) + self._least).astype(dtype, copy=False)


class _Wide:
    """Each number in 1, 2, 4 or 8 bytes: two bits for each say in how many, then those of each width follow in order.

    The sign is the lowest bit, so that small negative numbers are small.
    """

    __slots__ = ("_bits", "_count", "_parts")

    def __init__(self, folded: NumberArray, widths: NumberArray) -> None:
        self._count = len(folded)
        self._bits = [np.packbits(widths & 1), np.packbits(widths >> 1)]
        self._parts = [folded[widths == at].astype(kind) for at, kind in enumerate(_WIDTHS)]

    def unpacked(self, dtype: np.dtype[Any]) -> NumberArray:
        """Return the numbers."""
        low, high = (np.unpackbits(bits, count=self._count) for bits in self._bits)
        widths = low | high << 1
        folded = np.empty(self._count, np.uint64)
        for at, part in enumerate(self._parts):
            folded[widths == at] = part
        return ((folded >> np.uint64(1)).view(np.int64) ^ -(folded & np.uint64(1)).view(np.int64)).astype(dtype)


class _OnGrid:
    """Times that are multiples of the time grid, as how many of them."""

    __slots__ = ("_counts",)

    def __init__(self, counts: PackedBlock) -> None:
        self._counts = counts

    def unpacked(self, dtype: np.dtype[Any]) -> NumberArray:
        """Return the times in ns."""
        return self._counts.unpacked(np.dtype(np.int64)) * GRID_NS


def _packed_times(times: NumberArray) -> PackedBlock:
    """Pack floats as multiples of the time grid where all are, so that they come back bit for bit."""
    if np.all(np.abs(times) < EXACT_NS) and not np.signbit(times).any():
        steps = times / GRID_NS
        counts = steps.astype(np.int64)
        if np.array_equal(counts, steps):
            inner = packed(counts)
            if not isinstance(inner, _Plain):
                return _OnGrid(inner)
    return _Plain(times)


def packed(numbers: NumberArray) -> PackedBlock:
    """Pack numbers in the way that takes the least room."""
    if numbers.dtype.kind != "i":
        return _packed_times(numbers)
    least, most = int(numbers.min()), int(numbers.max())
    if least == most:
        return _Above(least, None, len(numbers))
    kind = next(kind for kind in _WIDTHS if most - least <= np.iinfo(kind).max)
    size = np.dtype(kind).itemsize
    if size > 2 and numbers.itemsize == 8:
        folded = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
        widths = np.zeros(len(numbers), np.uint8)
        for narrower in _WIDTHS[:-1]:
            widths += folded > np.iinfo(narrower).max
        if int((1 << widths.astype(np.int64)).sum()) + len(numbers) // 4 < size * len(numbers):
            return _Wide(folded, widths)
    if size >= numbers.itemsize:
        return _Plain(numbers)
    return _Above(least, (numbers.astype(np.int64) - least).astype(kind), len(numbers))
