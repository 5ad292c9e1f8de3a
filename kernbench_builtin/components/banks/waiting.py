"""The bursts that wait for the banks of a pseudo-channel, sorted by what they need next."""

from __future__ import annotations

from collections import deque

from kernbench_builtin.components.banks.queues import READ, WRITE, Burst, BurstQueue

CLOSED = -1


class WaitingBursts:
    """Keep which row of each bank is open, and which bursts wait for it, by kind, bank and row, the oldest first."""

    #: Where the bursts come from; set by the queue.
    queue: BurstQueue

    def __init__(self, banks: int) -> None:
        self._open = [CLOSED] * banks
        self._rows: tuple[dict[int, dict[int, deque[Burst]]], ...] = ({}, {})
        self._first: tuple[dict[int, Burst], dict[int, Burst]] = ({}, {})
        #: Banks that bursts of a kind wait for: their row is open, none is, another one is.
        self._hit: tuple[set[int], set[int]] = (set(), set())
        self._closed: tuple[set[int], set[int]] = (set(), set())
        self._barred: tuple[set[int], set[int]] = (set(), set())
        #: Whether something came in, or changed, since it was last looked at.
        self.dirty = False

    def take_in(self, kind: int, burst: Burst) -> None:
        """Let a burst be chosen from now on."""
        bank, row = burst.bank, burst.row
        rows = self._rows[kind]
        bank_rows = rows.get(bank)
        if bank_rows is None:
            rows[bank] = {row: deque((burst,))}
            self._sort(kind, bank)
        elif row in bank_rows:
            bank_rows[row].append(burst)
        else:
            bank_rows[row] = deque((burst,))
            if row == self._open[bank]:
                self._sort(kind, bank)
        self.dirty = True

    def _sort(self, kind: int, bank: int) -> None:
        """Note what the bursts of a kind that wait for a bank need, when that may have changed."""
        self._hit[kind].discard(bank)
        self._closed[kind].discard(bank)
        self._barred[kind].discard(bank)
        rows = self._rows[kind].get(bank)
        if rows is not None:
            row = self._open[bank]
            (self._closed if row == CLOSED else self._hit if row in rows else self._barred)[kind].add(bank)

    def _oldest(self, kind: int, bank: int) -> Burst:
        first = self._first[kind].get(bank)
        if first is None or first.issued:  # what came later is younger
            first = min((waiting[0] for waiting in self._rows[kind][bank].values()), key=_sequence)
            self._first[kind][bank] = first
        return first

    def _set_open(self, bank: int, row: int) -> None:
        self._open[bank] = row
        self._sort(READ, bank)
        self._sort(WRITE, bank)


def _sequence(burst: Burst) -> int:
    return burst.seq
