"""First fit: hand out aligned blocks of a range of addresses, and join the holes that freed ones leave."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

from attrs import frozen


@frozen
class Block:
    """One live allocation: where it starts, what it reserves (bytes, rounded up), and for whom."""

    address: int
    nbytes: int
    owner: object


class FirstFit:
    """Hand out aligned blocks of `[base, base + size)` from the first hole that fits; join holes on free.

    All quantities are bytes: so many are `used` now, and `most` were at a time. An owner is any object whose `str`
    names who asked.
    """

    __slots__ = (
        "_given", "_hole_ends", "_hole_starts", "_live", "_order", "alignment", "base", "most", "size", "used",
    )  # fmt: skip

    def __init__(self, base: int, size: int, alignment: int = 1) -> None:
        if base % alignment:
            raise ValueError(f"base must be a multiple of the alignment {alignment}, not {base}; align it.")
        self.base = base
        self.size = size - size % alignment
        self.alignment = alignment
        self.used = self.most = 0
        # by start how many bytes a block has, for whom, and its number
        self._live: dict[int, tuple[int, object, int]] = {}
        # the starts, ascending
        self._order: list[int] = []
        self._given = 0
        self._hole_starts: list[int] = [base] if self.size else []
        self._hole_ends: list[int] = [base + self.size] if self.size else []

    def alloc(self, nbytes: int, owner: object) -> int | None:
        """Reserve `nbytes` (at least one alignment unit); gives the address, or None when no hole fits."""
        if nbytes > self.size:
            return None
        need = -(-nbytes // self.alignment) * self.alignment or self.alignment
        starts, ends = self._hole_starts, self._hole_ends
        for index, start in enumerate(starts):
            if ends[index] - start >= need:
                if ends[index] - start == need:
                    del starts[index], ends[index]
                else:
                    starts[index] = start + need
                self._live[start] = (need, owner, self._given)
                insort(self._order, start)
                self._given += 1
                self.used += need
                if self.used > self.most:
                    self.most = self.used
                return start
        return None

    def free(self, address: int) -> None:
        """Give a block back by its address; an address that is not allocated is a KeyError."""
        nbytes, _, _ = self._live.pop(address)
        del self._order[bisect_left(self._order, address)]
        start, end = address, address + nbytes
        self.used -= nbytes
        starts, ends = self._hole_starts, self._hole_ends
        index = bisect_left(starts, start)
        if index < len(starts) and starts[index] == end:
            end = ends[index]
            del starts[index], ends[index]
        if index and ends[index - 1] == start:
            ends[index - 1] = end
        else:
            starts.insert(index, start)
            ends.insert(index, end)

    def block_at(self, address: int) -> tuple[int, int, int] | None:
        """Give the live block that holds a byte as (start, end, number), or None; no two blocks have one number."""
        index = bisect_right(self._order, address) - 1
        if index >= 0:
            start = self._order[index]
            nbytes, _, number = self._live[start]
            end = start + nbytes
            if address < end:
                return start, end, number
        return None

    @property
    def free_bytes(self) -> int:
        """Bytes that are not reserved, in all holes together."""
        return self.size - self.used

    @property
    def largest_hole(self) -> int:
        """Bytes of the largest allocation that still fits."""
        return max((end - start for start, end in zip(self._hole_starts, self._hole_ends, strict=True)), default=0)

    @property
    def holes(self) -> tuple[tuple[int, int], ...]:
        """The free ranges as (start, end), ascending, never touching each other."""
        return tuple(zip(self._hole_starts, self._hole_ends, strict=True))

    def table(self) -> tuple[Block, ...]:
        """The live blocks by ascending address."""
        return tuple(Block(address, *self._live[address][:2]) for address in sorted(self._live))
