"""Who a kernel may send to: the PEs of a launch, by rank and place or by direction, and the channel they use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from numbers import Integral
from typing import Final

from attrs import field, frozen

from kernbench_core.errors import ConfigError, KernelError
from kernbench_core.wording import brief

Peer = int | tuple[int, int] | str
"""How a kernel names a PE: a rank (the PE of the same place there), (rank, place), or a direction."""

TIERS: Final = ("tcm", "sram", "hbm")
"""Where slots may be: the receiver's scratchpad, its cube's SRAM, its own HBM slice."""

SLOT_ALIGNMENT: Final = 64
"""What the bytes of a slot are a multiple of: a line of the scratchpad."""

_SAME_MM: Final = 1e-3

DIRECTIONS: Final[Mapping[str, tuple[int, int]]] = {"n": (0, -1), "e": (1, 0), "s": (0, 1), "w": (-1, 0)}
"""The directions by their step in x (to the east) and y (to the south)."""


def _is_index(value: object, count: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and 0 <= int(value) < count


@frozen(cache_hash=True)
class Channel:
    """Which queues a launch uses: those of one name, apart from all others, with these slots.

    `slots` (how many), `slot_bytes` and `tier` ("tcm", "sram" or "hbm") default to what the receiver's pe_ipcq says.
    Channels that differ in anything have different queues. `chosen_by` makes no difference: it says in
    errors how a user chooses the slots. ConfigError for slots that cannot be.
    """

    name: str = ""
    slots: int | None = None
    slot_bytes: int | None = None
    tier: str | None = None
    chosen_by: str = field(default="", eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        check_slots(
            f"channel {self.name!r}",
            1 if self.slots is None else self.slots,
            SLOT_ALIGNMENT if self.slot_bytes is None else self.slot_bytes,
            TIERS[0] if self.tier is None else self.tier,
        )


def check_slots(owner: str, slots: object, slot_bytes: object, tier: object) -> None:
    """Raise a ConfigError, with a sentence for each fault, when `owner` asks for slots that cannot be."""
    problems = []
    if not _is_index(slots, 1 << 31) or not slots:
        problems.append(f"{owner}: slots must be a whole number of at least 1, not {slots!r}.")
    if not isinstance(slot_bytes, int) or slot_bytes < 1 or slot_bytes % SLOT_ALIGNMENT:
        problems.append(
            f"{owner}: slot_bytes must be a multiple of {SLOT_ALIGNMENT}, a line of the scratchpad, not {slot_bytes!r}."
        )
    if tier not in TIERS:
        problems.append(f"{owner}: tier must be one of {', '.join(TIERS)}, not {tier!r}.")
    if problems:
        raise ConfigError(*problems)


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

    def resolve(self, pe: int, to: Peer, nearest: Callable[[int, str], int | None] | None = None) -> int:
        """Give the machine's index of the PE that the PE `pe` calls `to`; KernelError when there is none.

        `nearest` finds neighbours where `direction` is not given.
        """
        if type(to) is int and 0 <= to < len(self.ranks):  # what nearly every message names
            own, place = self.ranks[to], self._places[pe][1]
            if place < len(own):
                return own[place]
        if isinstance(to, str):
            return self._towards(pe, to, self.direction or nearest)
        rank, place = to if isinstance(to, tuple) and len(to) == 2 else (to, self._places[pe][1])
        if not _is_index(rank, len(self.ranks)):
            raise KernelError(f"a peer must be a rank from 0 to {len(self.ranks) - 1}, not {brief(rank)}.")
        if not _is_index(place, len(self.ranks[rank])):
            raise KernelError(
                f"a peer's place must be one from 0 to {len(self.ranks[rank]) - 1} in rank {rank}, not {brief(place)}."
            )
        return self.ranks[rank][place]

    def _towards(self, pe: int, name: str, direction: Callable[[int, str], int | None] | None) -> int:
        if name not in DIRECTIONS:
            raise KernelError(f"a peer must be a direction, one of {', '.join(DIRECTIONS)}, not {brief(name)}.")
        found = None if direction is None else direction(pe, name)
        if found is None:
            raise KernelError(
                f"a peer must be in a direction in which this PE has a neighbour, not {name!r}; name it by its number."
            )
        if found not in self._places:
            raise KernelError(
                f"a peer must take part in the launch, and the neighbour in direction {name!r} does not; launch on it "
                "too, or name another by its number."
            )
        return found


@lru_cache(maxsize=64)
def by_position(pes: tuple[int, ...]) -> Peers:
    """Give the peers of a launch that names none: each PE is a rank; launches on the same PEs share them."""
    return Peers(tuple((pe,) for pe in pes))


def nearest_in(places: Mapping[int, tuple[float, float] | None], pe: int, direction: str) -> int | None:
    """Give the nearest PE straight in a direction, by positions (x to the east, y to the south); None without one.

    Straight is in the same row or column, to a micrometre (positions in mm); of several the one with the lowest number.
    """
    step_x, step_y = DIRECTIONS[direction]
    own = places[pe]
    best: tuple[float, int] | None = None
    for other, at in places.items():
        if own is None or at is None:
            continue
        x, y = at[0] - own[0], at[1] - own[1]
        ahead, aside = x * step_x + y * step_y, x * step_y + y * step_x
        if ahead > _SAME_MM and abs(aside) <= _SAME_MM and (best is None or (ahead, other) < best):
            best = (ahead, other)
    return None if best is None else best[1]
