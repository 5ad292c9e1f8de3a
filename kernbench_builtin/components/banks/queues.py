"""The read and the write queue of a scheduler: in order of arrival in front, and whose turn it is."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from kernbench_builtin.components.banks.timing import QueueSizes

READ, WRITE = 0, 1


class BurstPlace(Protocol):
    """Where bursts go: a pseudo-channel."""

    queue: BurstQueue
    last_col: float

    def take_in(self, kind: int, burst: Burst) -> None:
        """Let a burst be chosen from now on."""

    def may_come(self, kind: int, bank: int, row: int) -> float:
        """Return before when (ns) the next command for a burst of a row cannot come as things stand."""

    def look_again(self) -> None:
        """Find when each kind of command may come, when it is the other kind's turn."""


class Burst:
    """Be one burst of a request, from its arrival (ns) to its column command; `seq` orders all of a controller."""

    __slots__ = ("at", "bank", "issued", "job", "last", "place", "row", "seq")

    def __init__(self, at: float, place: BurstPlace, bank: int, row: int, job: Any, seq: int) -> None:
        self.at = at
        self.place = place
        self.bank = bank
        self.row = row
        self.job = job
        self.seq = seq
        self.issued = False
        #: Whether it is the last of its request in this queue: when it is taken in is an answer's time.
        self.last = False


class BurstQueue:
    """Hold the bursts that a scheduler chooses from, reads and writes apart; those beyond its sizes wait in order.

    A burst has its place until the clock after its column command. Commands may be settled before their time: `leaving`
    has the times (ns) of those whose bursts still have a place.
    """

    def __init__(self, sizes: QueueSizes, clock: float, places: Sequence[BurstPlace]) -> None:
        self.sizes = sizes
        self.places = places
        self.mode = READ
        self.ingress: tuple[deque[Burst], deque[Burst]] = (deque(), deque())
        self.order: tuple[deque[Burst], deque[Burst]] = (deque(), deque())
        self.count = [0, 0]
        self.leaving: tuple[deque[float], deque[float]] = (deque(), deque())
        #: When (ns) to look at it, or at what its bursts wait for, again; kept by the channel.
        self.next = math.inf
        #: When (ns) it was looked at last.
        self.looked = -math.inf
        self._depth = (sizes.reads, sizes.writes)
        self._clock = clock
        for place in places:
            place.queue = self

    def add(self, kind: int, bursts: list[Burst]) -> None:
        """Take bursts in the order in which they arrive; each counts from its own time on."""
        bursts[-1].last = True
        self.ingress[kind].extend(bursts)

    def is_stuck(self, kind: int) -> bool:
        """Say whether nothing of a kind can come in before a command of it is given, and something waits for that."""
        return bool(self.ingress[kind]) and not self.leaving[kind] and self.count[kind] >= self._depth[kind]

    def look(self, now: float, taken: Callable[[Burst, float], None]) -> None:
        """Let in what has arrived, and change the turn if it is time to."""
        self.looked = now
        if not (self.mode == WRITE or self.ingress[WRITE] or self.count[WRITE] or self.leaving[WRITE]):
            if self.leaving[READ] or self.count[READ] < self._depth[READ]:
                self._admit(READ, now, taken)
            return
        if self.mode == WRITE and not self.count[WRITE] and self._rests(now):
            self._turn()
        self.admit(now, taken)
        if self.turns():
            self._turn()

    def _turn(self) -> None:
        self.mode = 1 - self.mode
        for place in self.places:
            place.look_again()

    def admit(self, now: float, taken: Callable[[Burst, float], None]) -> None:
        """Let in what has arrived, where there is room; `taken` is called with the last burst of a request."""
        self._admit(READ, now, taken)
        self._admit(WRITE, now, taken)

    def _admit(self, kind: int, now: float, taken: Callable[[Burst, float], None]) -> None:
        leaving, ingress = self.leaving[kind], self.ingress[kind]
        while leaving and leaving[0] < now:
            leaving.popleft()
        if not ingress or ingress[0].at > now:
            return
        room = before = self._depth[kind] - self.count[kind] - len(leaving)
        if room <= 0:
            return
        order = self.order[kind]
        while room > 0 and ingress and ingress[0].at <= now:
            burst = ingress.popleft()
            room -= 1
            order.append(burst)
            burst.place.take_in(kind, burst)
            if burst.last:
                taken(burst, now)
        self.count[kind] += before - room

    def turns(self) -> bool:
        """Say whether it is the other kind's turn: writes go from the upper mark on or when no read waits, to the lower
        mark or the last one.
        """
        count, leaving = self.count, self.leaving
        writes = count[WRITE] + len(leaving[WRITE])
        if self.mode == READ:
            return writes > 0 and (writes >= self.sizes.drain_from or not (count[READ] or leaving[READ]))
        return not writes or (writes <= self.sizes.drain_to and bool(count[READ] or leaving[READ]))

    def _rests(self, now: float) -> bool:
        """Say whether there was no write at the clock before `now`, so that it was the turn of reads then."""
        before, ingress = now - self._clock, self.ingress[WRITE]
        if ingress and ingress[0].at <= before:
            return False
        return all(place.last_col < before for place in self.places)

    def certain(self, kind: int) -> bool:
        """Say whether those whose turn it is keep it as far as what is known tells, and have one pseudo-channel."""
        if len(self.places) > 1:
            return False
        if kind == WRITE:
            return True
        return self.count[WRITE] + len(self.leaving[WRITE]) + len(self.ingress[WRITE]) < self.sizes.drain_from

    def next_change(self, now: float, command: float, hurried: bool) -> float:
        """Return when what comes or goes here may change anything: at the latest with the next `command` (ns).

        With `hurried`, somebody waits for the last burst of a read to be let in.
        """
        mode = self.mode
        other = 1 - mode
        ingress, leaving, count = self.ingress, self.leaving[mode], self.count[mode]
        if self.count[other] or self.leaving[other] or ingress[other]:
            if self.turns():
                return now + self._clock
            if leaving and leaving[-1] + self._clock < command:
                command = leaving[-1] + self._clock  # the other kind may have its turn then
            if ingress[other]:
                command = self._next_turn(other, now, command, hurried)
        if ingress[mode] and (leaving or count < self._depth[mode]):
            return self._next_arrival(mode, now, command, hurried)
        return command

    def _next_turn(self, kind: int, now: float, before: float, hurried: bool) -> float:
        """Return when the arrival of those whose turn it is not changes anything; at the latest `before`.

        It is their turn with so many writes, or with the first where none of those whose turn it is are left to go
        before; and the last burst of a write is an answer.
        """
        count, leaving = self.count, self.leaving
        writes = count[WRITE] + len(leaving[WRITE])
        needed: float = 1
        if kind == READ:
            if writes > self.sizes.drain_to:
                needed = math.inf
        elif count[READ] or leaving[READ]:
            needed = self.sizes.drain_from - writes
        if self.is_stuck(kind):
            return before
        answers = hurried or kind == WRITE
        for number, (burst, arrival) in enumerate(self._arrivals(kind, now), 1):
            if arrival >= before:
                break
            if number >= needed or (burst.last and answers):
                return arrival
        return before

    def _next_arrival(self, kind: int, now: float, before: float, hurried: bool) -> float:
        """Return when the arrival of those whose turn it is changes anything; at the latest `before`.

        One that neither ends a write nor can have a command when it is let in may as well be let in later.
        """
        answers = hurried or kind == WRITE
        seen: set[tuple[BurstPlace, int, int]] = set()
        for burst, arrival in self._arrivals(kind, now):
            if arrival >= before:
                break
            if burst.last and answers:
                return arrival
            where = (burst.place, burst.bank, burst.row)
            if where not in seen:  # a later one of the same row can have nothing earlier
                seen.add(where)
                time = burst.place.may_come(kind, burst.bank, burst.row)
                if time < before:
                    before = max(arrival, time)
        return before

    def _arrivals(self, kind: int, now: float) -> Iterator[tuple[Burst, float]]:
        """Yield the bursts in front that come in before another command is given, and when (ns)."""
        clock = self._clock
        arrival, leaving = now + clock, self.leaving[kind]
        room = self._depth[kind] - self.count[kind] - len(leaving)
        slots = iter(leaving)
        for burst in self.ingress[kind]:
            if burst.at > arrival:
                arrival = -(-burst.at // clock) * clock
            if room > 0:
                room -= 1
            else:
                slot = next(slots, math.inf) + clock
                if slot > arrival:
                    arrival = slot
            yield burst, arrival
