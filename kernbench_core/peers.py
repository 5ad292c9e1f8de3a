"""Who a kernel may send to: the PEs of a launch, by rank and place or by direction, and the channel they use."""

from __future__ import annotations

from collections.abc import Callable

from attrs import field, frozen

from kernbench_core.errors import KernelError

Peer = int | tuple[int, int] | str
"""How a kernel names a PE: a rank (the PE of the same place there), (rank, place), or a direction."""


@frozen
class Channel:
    """Which queues a launch uses: those of one name, apart from all others, with these slots.

    `slots` (how many), `slot_bytes` and `tier` ("tcm", "sram" or "hbm") default to what the receiver's pe_ipcq says.
    """

    name: str = ""
    slots: int | None = None
    slot_bytes: int | None = None
    tier: str | None = None


@frozen(eq=False)
class Peers:
    """The PEs of a launch: `ranks[r][p]` is the machine's index of the PE at place p of rank r.

    `direction(pe, name)` gives the neighbour of a PE in a direction, or None where it has none.
    """

    ranks: tuple[tuple[int, ...], ...]
    channel: Channel = Channel()
    direction: Callable[[int, str], int | None] | None = None
    _places: dict[int, tuple[int, int]] = field(init=False)

    @_places.default
    def _index(self) -> dict[int, tuple[int, int]]:
        return {pe: (rank, place) for rank, pes in enumerate(self.ranks) for place, pe in enumerate(pes)}

    @property
    def single(self) -> bool:
        """Whether every rank is one PE."""
        return all(len(pes) == 1 for pes in self.ranks)

    def place_of(self, pe: int) -> tuple[int, int]:
        """Give (rank, place) of a PE of the machine; KeyError when it takes no part."""
        return self._places[pe]

    def name_of(self, pe: int) -> int | tuple[int, int]:
        """Give what a kernel calls a PE: its rank where every rank is one PE, else (rank, place)."""
        rank, place = self._places[pe]
        return rank if self.single else (rank, place)

    def resolve(self, pe: int, to: Peer) -> int:
        """Give the machine's index of the PE that the PE `pe` calls `to`; KernelError when there is none."""
        if isinstance(to, str):
            found = None if self.direction is None else self.direction(pe, to)
            if found is None:
                raise KernelError(
                    f"a peer must be a direction in which this PE has a neighbour, not {to!r}; name it by its number."
                )
            return found
        rank, place = to if isinstance(to, tuple) and len(to) == 2 else (to, self._places[pe][1])
        if not _is_index(rank, len(self.ranks)):
            raise KernelError(f"a peer must be a rank from 0 to {len(self.ranks) - 1}, not {rank!r}.")
        if not _is_index(place, len(self.ranks[rank])):
            raise KernelError(
                f"a peer's place must be one from 0 to {len(self.ranks[rank]) - 1} in rank {rank}, not {place!r}."
            )
        return self.ranks[rank][place]


def _is_index(value: object, count: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < count
