"""The read and the write queue of a scheduler: in order of arrival in front, and whose turn it is."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from kernbench_builtin.components.banks.timing import QueueSizes

READ, WRITE = 0, 1


class BurstPlace(Protocol):
    """Where bursts go: a pseudo-channel."""

    queue: BurstQueue
    dirty: bool
    last_col: float

    def take_in(self, kind: int, burst: Burst) -> None:
        """Let a burst be chosen from now on."""

    def earliest(self, kind: int, burst: Burst) -> float:
        """Return before when (ns) no command for a burst can come as things stand."""


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
        self._depth = (sizes.reads, sizes.writes)
        self._clock = clock
        for place in places:
            place.queue = self

    def add(self, kind: int, bursts: list[Burst]) -> None:
        """Take bursts in the order in which they arrive; each counts from its own time on."""
        bursts[-1].last = True
        self.ingress[kind].extend(bursts)

    def admit(self, now: float, taken: Callable[[Burst, float], None]) -> None:
        """Let in what has arrived, where there is room; `taken` is called with the last burst of a request."""
        for kind in (READ, WRITE):
            leaving = self.leaving[kind]
            while leaving and leaving[0] < now:
                leaving.popleft()
            ingress = self.ingress[kind]
            if not ingress or ingress[0].at > now:
                continue
            room = self._depth[kind] - self.count[kind] - len(leaving)
            before = room
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
        writes = self.count[WRITE] + len(self.leaving[WRITE])
        if self.mode == READ:
            if not writes:
                return False
            return writes >= self.sizes.drain_from or not (self.count[READ] or self.leaving[READ])
        return not writes or (writes <= self.sizes.drain_to and bool(self.count[READ] or self.leaving[READ]))

    def rests(self, now: float) -> bool:
        """Say whether there was no write at the clock before `now`, so that it was the turn of reads then."""
        before, ingress = now - self._clock, self.ingress[WRITE]
        if self.count[WRITE] or (ingress and ingress[0].at <= before):
            return False
        return all(place.last_col < before for place in self.places)

    def idle(self, kind: int) -> bool:
        """Say whether there is nothing of a kind, here or in front."""
        return not (self.count[kind] or self.leaving[kind] or self.ingress[kind])

    def next_change(self, now: float, command: float, hurried: bool) -> float:
        """Return when what comes or goes here may change anything: at the latest with the next `command` (ns).

        With `hurried`, somebody waits for the last burst of a read to be let in.
        """
        mode = self.mode
        other = 1 - mode
        leaving, ingress = self.leaving[mode], self.ingress
        if not (self.count[mode] or leaving or ingress[mode]) and self.idle(other):
            return command
        if self.turns():
            return now + self._clock
        if leaving and leaving[-1] + self._clock < command and not self.idle(other):
            command = leaving[-1] + self._clock  # the other kind may have its turn then
        if ingress[other]:
            command = self._next_turn(other, now, command)
        if ingress[mode] and self._admission(mode, now) < command:
            return self._next_arrival(mode, now, command, hurried)
        return command

    def _next_turn(self, kind: int, now: float, before: float) -> float:
        """Return when the arrival of those whose turn it is not changes anything; at the latest `before`.

        It is their turn with so many writes, or with the first where none of those whose turn it is are left to go
        before; and the last burst of a write is an answer.
        """
        reads, writes = (self.count[each] + len(self.leaving[each]) for each in (READ, WRITE))
        if kind == READ:
            needed = 1 if writes <= self.sizes.drain_to else math.inf
        else:
            needed = self.sizes.drain_from - writes if reads else 1
        clock, arrival = self._clock, now + self._clock
        room = self._depth[kind] - self.count[kind] - len(self.leaving[kind])
        slots = iter(self.leaving[kind])
        for number, burst in enumerate(self.ingress[kind], 1):
            if burst.at > arrival:
                arrival = -(-burst.at // clock) * clock
            if room > 0:
                room -= 1
            else:
                arrival = max(arrival, next(slots, math.inf) + clock)
            if arrival >= before:
                return before
            if number >= needed or burst.last:
                return arrival
        return before

    def _admission(self, kind: int, now: float) -> float:
        """Return when the next burst can be let in, unless a command makes room before."""
        ingress, leaving, clock = self.ingress[kind], self.leaving[kind], self._clock
        if not ingress:
            return math.inf
        at = max(-(-ingress[0].at // clock) * clock, now + clock)
        if self.count[kind] + len(leaving) < self._depth[kind]:
            return at
        return max(at, leaving[0] + clock) if leaving else math.inf

    def _next_arrival(self, kind: int, now: float, before: float, hurried: bool) -> float:
        """Return when a burst that comes first changes anything, where only one kind is about; at the latest `before`.

        One that neither ends a write nor can have a command when it is let in may as well be let in later.
        """
        clock = self._clock
        arrival = now + clock
        room = self._depth[kind] - self.count[kind] - len(self.leaving[kind])
        slots = iter(self.leaving[kind])
        seen: set[tuple[BurstPlace, int, int]] = set()
        for burst in self.ingress[kind]:
            if burst.at > arrival:
                arrival = -(-burst.at // clock) * clock
            if room > 0:
                room -= 1
            else:
                arrival = max(arrival, next(slots, math.inf) + clock)
            if arrival >= before:
                break
            if burst.last and (hurried or kind == WRITE):
                return arrival
            place = (burst.place, burst.bank, burst.row)
            if place not in seen:  # a later one of the same row can have nothing earlier
                seen.add(place)
                before = min(before, max(arrival, burst.place.earliest(kind, burst)))
        return before
