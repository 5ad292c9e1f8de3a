"""What the ranks of a group have called, by number: calls that do not fit each other are found before they start."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field, frozen


@frozen
class LedgerEntry:
    """One rank's call: `rank` made it as number `number` at `line`.

    `name` is the function; `details` are the words that must be the same on every rank, by what they say.
    """

    rank: int
    name: str
    number: int
    details: Mapping[str, str]
    line: str

    def __str__(self) -> str:
        words = ", ".join(self.details.values())
        return f"{self.name} #{self.number}" + (f" ({words})" if words else "")

    def fits(self, other: LedgerEntry) -> bool:
        """Tell whether two ranks' calls can be the same collective."""
        return self.name == other.name and self.details == other.details


@define(eq=False)
class CallLedger:
    """The calls of one group of ranks; `name` is the group's, "" for calls that make groups.

    Calls that all ranks have made are forgotten.
    """

    name: str
    ranks: tuple[int, ...]
    _first: dict[int, LedgerEntry] = field(factory=dict)
    _made: dict[int, int] = field(factory=dict)
    _counts: dict[int, int] = field(factory=dict)

    def spell(self, call: LedgerEntry) -> str:
        """Write a call with whose it is, as "barrier #2 of world"."""
        return f"{call} of {self.name}" if self.name else str(call)

    def next_number(self, rank: int) -> int:
        """Return the number that the next call of a rank has, from 0."""
        return self._made.get(rank, 0)

    def enter(self, call: LedgerEntry) -> LedgerEntry | None:
        """Write down a call; return the earlier call of another rank that it does not fit, if there is one."""
        self._made[call.rank] = call.number + 1
        first = self._first.setdefault(call.number, call)
        self._counts[call.number] = self._counts.get(call.number, 0) + 1
        if self._counts[call.number] == len(self.ranks):
            del self._first[call.number], self._counts[call.number]
        return None if first.fits(call) else first

    def told(self) -> list[str]:
        """Say, in a line for each, which calls only some of the ranks have made."""
        lines = []
        for number, ranks in self.missing.items():
            who = f"rank {ranks[0]} has" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))} have"
            first = self._first[number]
            lines.append(f"{who} not made {self.spell(first)}, which rank {first.rank} made at {first.line}")
        return lines

    @property
    def missing(self) -> dict[int, tuple[int, ...]]:
        """The ranks that have not made a call that others have, by its number."""
        return {
            number: tuple(rank for rank in self.ranks if self._made.get(rank, 0) <= number) for number in self._first
        }
