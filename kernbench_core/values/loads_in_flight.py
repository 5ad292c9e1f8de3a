"""What a load under way must not find: the writes that its own PE issues after it.

A load samples memory when it completes, and a write is visible when it is issued; so a load that nobody waited for
would find what its own program stores later. Where that is about to happen the load gets memory of its own: a copy of
the index of what it reads, which holds the writes of all other PEs from then on, and none of its own.
"""

from __future__ import annotations

from attrs import define, field

from kernbench_core.values.region import Region, ascending_pieces, overlaps
from kernbench_core.values.store_index import SpaceIndex, Write


@define(eq=False)
class LoadInFlight:
    """A load of a PE that its program did not wait for: what it reads, and its own memory once it needs one."""

    pe: int
    pieces: tuple[Region, ...]
    own: SpaceIndex | None = None

    def meets(self, write: Write) -> bool:
        """Tell whether a write shares a byte with what the load reads."""
        theirs = [piece for region in write.regions for piece in ascending_pieces(region)]
        return any(overlaps(mine, piece) for mine in self.pieces for piece in theirs)


@define(eq=False)
class LoadsInFlight:
    """The loads of one space that are under way and that nobody waited for."""

    _by_pe: dict[int, dict[LoadInFlight, None]] = field(factory=dict)
    _apart: dict[LoadInFlight, None] = field(factory=dict)

    def begin(self, pe: int, regions: tuple[Region, ...]) -> LoadInFlight:
        """Note a load at its issue."""
        load = LoadInFlight(pe, tuple(piece for region in regions for piece in ascending_pieces(region)))
        self._by_pe.setdefault(pe, {})[load] = None
        return load

    def end(self, load: LoadInFlight) -> bool:
        """Forget a load that has completed; return whether any is left."""
        loads = self._by_pe[load.pe]
        del loads[load]
        if not loads:
            del self._by_pe[load.pe]
        self._apart.pop(load, None)
        return bool(self._by_pe)

    def before(self, write: Write, index: SpaceIndex) -> None:
        """Take note of a write that is about to go to `index`: later than the loads of its PE, seen by those of others.
        """
        pe = None if write.ticket.writer is None else write.ticket.writer[0]
        for load in self._apart:
            if load.pe != pe and load.own is not None:
                load.own.insert(write)
        for load in self._by_pe.get(pe, ()) if pe is not None else ():
            if load.own is None and load.meets(write):
                load.own = index.part(load.pieces)
                self._apart[load] = None
