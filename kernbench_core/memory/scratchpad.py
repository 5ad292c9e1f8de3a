"""The allocation table of one PE's scratchpad: real capacity, space that lives as long as its last user.

A block is given back when nothing refers to it any more: no handle of the kernel, and no command in
flight (a command holds the blocks that it reads and writes until it is complete). CPython's reference
counts make that moment deterministic.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable

from kernbench_core.callsite import CallSite, describe_site
from kernbench_core.errors import KernelError, TcmOverflowError
from kernbench_core.memory.allocator import Block, FirstFit
from kernbench_core.topology.address import TCM_ALIGNMENT
from kernbench_core.units import format_bytes
from kernbench_core.values.region import Region

_MOST_ROWS = 16


class Birth:
    """What a block is for: the call that made it, the tensor's shape and dtype, and the kernel line."""

    __slots__ = ("dtype", "op", "shape", "site")

    def __init__(self, op: str, shape: tuple[int, ...], dtype: str, site: CallSite) -> None:
        self.op = op
        self.shape = shape
        self.dtype = dtype
        self.site = site

    def __str__(self) -> str:
        return f"{self.op} {self.dtype} {list(self.shape)}, born at {describe_site(self.site)}"


class TcmBlock:
    """Space in a scratchpad for one tensor, at physical address `address`.

    `users` counts the commands in flight that use it; they also hold a reference until they are complete.
    """

    __slots__ = ("_table", "address", "birth", "freed_at", "offset", "region", "users")

    def __init__(self, table: TcmTable, address: int, nbytes: int, birth: Birth) -> None:
        self._table: TcmTable | None = table
        self.address = address
        self.offset = address - table.fit.base
        self.region = Region(address, nbytes)
        self.birth = birth
        self.users = 0
        self.freed_at: CallSite | None = None

    def free(self, site: CallSite) -> None:
        """Give the space back as soon as no command in flight uses it; called by `tl.free` only."""
        if self.freed_at is not None:
            raise KernelError(
                f"tl.free at {describe_site(site)} must be given a live tensor, and {self} was freed at "
                f"{describe_site(self.freed_at)}; free it once."
            )
        self.freed_at = site
        if not self.users:
            self._release()

    def refuse(self, use: str, site: CallSite) -> None:
        """Raise a KernelError for a use, at the line `site`, after the space was freed."""
        assert self.freed_at is not None
        raise KernelError(
            f"{use} at {describe_site(site)} must be given a live tensor, and {self} was freed at "
            f"{describe_site(self.freed_at)}; free it after its last use."
        )

    def done(self) -> None:
        """Note that a command in flight is complete."""
        self.users -= 1
        if not self.users and self.freed_at is not None:
            self._release()

    def _release(self) -> None:
        table, self._table = self._table, None
        if table is not None:
            table.give_back(self.address)

    def __del__(self) -> None:
        self._release()

    def __str__(self) -> str:
        birth = self.birth
        return f"{birth.dtype} {list(birth.shape)} of {birth.op}, born at {describe_site(birth.site)}"


class TcmTable:
    """Allocate blocks of one PE's scratchpad, `[base, base + size)` in physical addresses."""

    __slots__ = ("_askers", "_mourners", "_watchers", "fit", "pe")

    def __init__(self, pe: str, base: int, size: int) -> None:
        self.pe = pe
        self.fit = FirstFit(base, size, TCM_ALIGNMENT)
        self._watchers: list[Callable[[TcmBlock], None]] = []
        self._mourners: list[Callable[[int], None]] = []
        self._askers: list[Callable[[int, int | None], None]] = []

    def watch(
        self, born: Callable[[TcmBlock], None], gone: Callable[[int], None] | None = None,
        asked: Callable[[int, int | None], None] | None = None,
    ) -> None:  # fmt: skip
        """Have `born(block)` called when a block has been handed out, `gone(address)` when it has been given back.

        `asked(least, below)` is called where a program asked for `room`: between which bytes the largest hole is.
        """
        self._watchers.append(born)
        if gone is not None:
            self._mourners.append(gone)
        if asked is not None:
            self._askers.append(asked)

    def room(self, nbytes: int, most: int) -> int:
        """Return how many times the largest hole has so many bytes, `most` at most; when commands end decides that."""
        count = min(most, self.fit.largest_hole // max(1, nbytes))
        for asked in self._askers:
            asked(nbytes * count, nbytes * (count + 1) if count < most else None)
        return count

    def give_back(self, address: int) -> None:
        """Free a block by its address; called by the block, once."""
        self.fit.free(address)
        for gone in self._mourners:
            gone(address)

    def allocate(self, op: str, shape: tuple[int, ...], dtype: str, nbytes: int, site: CallSite) -> TcmBlock:
        """Reserve space for a tensor; TcmOverflowError, with the whole table, when no hole fits."""
        block = self.find(op, shape, dtype, nbytes, site)
        if block is None:
            raise TcmOverflowError(self._overflow(Birth(op, shape, dtype, site), nbytes))
        return block

    def find(self, op: str, shape: tuple[int, ...], dtype: str, nbytes: int, site: CallSite) -> TcmBlock | None:
        """Reserve space as `allocate` does; give None when no hole fits."""
        birth = Birth(op, shape, dtype, site)
        address = self.fit.alloc(nbytes, birth)
        if address is None:
            for asked in self._askers:  # a program may go on otherwise where there is room
                asked(0, max(1, nbytes))
        if address is None and nbytes <= self.fit.size:
            # handles in reference cycles: collected here, since automatic collection is off while a run lasts
            gc.collect()
            address = self.fit.alloc(nbytes, birth)
        if address is None:
            return None
        block = TcmBlock(self, address, nbytes, birth)
        for watcher in self._watchers:
            watcher(block)
        return block

    def _overflow(self, birth: Birth, nbytes: int) -> str:
        fit = self.fit
        wanted = f"{describe_site(birth.site)}: {birth.op} must find {format_bytes(nbytes)} of TCM on {self.pe} for "
        wanted += f"{birth.dtype} {list(birth.shape)}, and "
        if nbytes > fit.size:
            whole = format_bytes(fit.size)
            return f"{wanted}the whole scratchpad has {whole}; use smaller tiles, or more pe.tcm.capacity."
        rows = [f"  {b.address - fit.base:#010x}  {b.nbytes:>9} B  {b.owner}" for b in fit.table()]
        if len(rows) > _MOST_ROWS:
            rows[_MOST_ROWS:] = [f"  and {len(rows) - _MOST_ROWS} more; born at: {_births(fit.table()[_MOST_ROWS:])}"]
        return (
            f"{wanted}{format_bytes(fit.free_bytes)} of {format_bytes(fit.size)} are free "
            f"(largest hole {format_bytes(fit.largest_hole)}); use smaller tiles or tl.free a handle first. A "
            "handle keeps its space until its last name is gone and its last reader has finished: `a = tl.load(…)` in "
            "a loop holds two tiles, because the old one lives until the new one is there. Allocated, by offset:\n"
            + "\n".join(rows)
        )


def _births(blocks: Iterable[Block]) -> str:
    """Count the blocks that were born alike."""
    counts = Counter(str(block.owner) for block in blocks)
    return "; ".join(f"{count} x {birth}" for birth, count in counts.items())
