"""One channel: pseudo-channels that share a row-command and a column-command bus, clock by clock."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from kernbench_builtin.components.banks.pseudo_channel import PseudoChannel
from kernbench_builtin.components.banks.queues import READ, WRITE, Burst, BurstQueue
from kernbench_core.environment import Environment


class _Wake:
    """Be the event that wakes a channel; one that was overtaken by an earlier one does nothing."""

    __slots__ = ("callbacks", "time")

    _ok = True
    _value = None

    def __init__(self, time: float) -> None:
        self.callbacks: Any = None
        self.time = time


class BankChannel:
    """Give the commands of the pseudo-channels of a channel, at most one on each bus at a time.

    At each clock: what has arrived is let into the queues; one column command goes, of the pseudo-channel whose last
    one was the shortest possible time before, else the oldest; one row command goes, of a refresh that is due, else the
    oldest. A clock at which nothing can happen costs nothing. `on_taken(burst, now)` is called when the last burst
    of a request is let in, `hurried()` says whether that of a read has somebody waiting.
    """

    def __init__(
        self,
        env: Environment,
        places: list[PseudoChannel],
        queues: list[BurstQueue],
        on_taken: Callable[[Burst, float], None],
        hurried: Callable[[], bool],
    ) -> None:
        self.env = env
        self._places = places
        self._queues = queues
        self._on_taken = on_taken
        self._hurried = hurried
        self._timing = places[0].timing
        self._clock = self._timing.tCK
        self._row_free = 0.0
        self._wake_at = math.inf
        self._now = -math.inf
        self._due = 0.0
        self._note_due()

    def wake(self, time: float) -> None:
        """Look what there is to do at the first clock from `time` on (ns; not in the past) that was not looked at."""
        self._schedule(max(-(-time // self._clock) * self._clock, self._now + self._clock))

    def let_in_before(self, time: float) -> None:
        """Let in what had room before the first clock from `time` on (ns): nobody needed to know when it came in."""
        before = (-(-time // self._clock) - 1) * self._clock
        if before > self._now:
            for queue in self._queues:
                queue.admit(before, self._on_taken)

    def _schedule(self, time: float) -> None:
        if time < self._wake_at:
            self._wake_at = time
            event: Any = _Wake(time)
            self.env.call_at(time, event, self._on_wake)

    def _on_wake(self, event: Any) -> None:
        now = event.time
        if now != self._wake_at:
            return
        self._wake_at = math.inf
        self._now = now
        if self._due < now:
            self._catch_up(now)
        for queue in self._queues:
            if queue.mode == WRITE and queue.rests(now):
                queue.mode = READ
            if queue.ingress[0] or queue.ingress[1] or queue.leaving[0] or queue.leaving[1]:
                queue.admit(now, self._on_taken)
            if queue.turns():
                queue.mode = 1 - queue.mode
                for place in queue.places:
                    place.dirty = True
        if self._due <= now:
            self._refresh(now)
        self._give(now)
        self._schedule(self._next(now))

    def _next(self, now: float) -> float:
        """Return when to wake: at the next command, or before it where what arrives may change something."""
        command = math.inf
        for place in self._places:
            if place.next < command:
                command = place.next
        if self._due < command:
            for queue in self._queues:
                if queue.count[0] or queue.count[1]:
                    command = min(command, self._next_maintenance(now))
                    break
        following, hurried = command, self._hurried()
        for queue in self._queues:
            time = queue.next_change(now, command, hurried)
            if time < following:
                following = time
        return following

    def _next_maintenance(self, now: float) -> float:
        """Return when the next command of a refresh may come; before one is due, when it is."""
        first = max(self._row_free, now + self._clock)
        due = [place.next_ref for place in self._places if place.next_ref > now]
        return min([*due, *(max(place.maintenance_at(now), first) for place in self._places if place.next_ref <= now)])

    # Buses ----------------------------------------------------------------------------------------

    def _give(self, now: float) -> None:
        """Give the commands of this clock, and note when each pseudo-channel can have its next one."""
        later = now + self._clock
        column: PseudoChannel | None = None
        row: PseudoChannel | None = None
        for place in self._places:
            if place.dirty or place.next <= now or place.next_ref <= now:
                place.scan(now, self._row_free)
            else:
                place.column = place.row = None
            if place.column is not None and (column is None or self._goes_before(place, column, now)):
                column = place
            if place.row is not None and (row is None or place.row.seq < row.row.seq):  # type: ignore[union-attr]
                row = place
        if column is not None and not self._is_settled(now):
            column.give_columns(now)
            column.dirty = True
        if row is not None:
            self._row_free = row.give_row(now)
        for place in self._places:
            if place.dirty:
                place.scan(now, self._row_free)
            if place.column is not None or place.next < later:
                place.next = later
            if place.row is not None:
                place.next = min(place.next, max(later, self._row_free))

    def _goes_before(self, place: PseudoChannel, other: PseudoChannel, now: float) -> bool:
        """Say which of two column commands of one clock goes first."""
        beat = now - self._timing.tCCD_S
        if (place.last_col == beat) != (other.last_col == beat):
            return place.last_col == beat
        assert place.column is not None and other.column is not None
        return place.column.seq < other.column.seq

    def _is_settled(self, now: float) -> bool:
        """Say whether the clock of a column command went to one that was settled before."""
        for place in self._places:
            ahead = place.last_col - now
            if ahead >= 0.0 and not ahead % self._timing.tCCD_S:
                return True
        return False

    # Refresh --------------------------------------------------------------------------------------

    def _refresh(self, now: float) -> None:
        """Give one command of a refresh that is due, if the bus is free."""
        if self._row_free <= now:
            for place in self._places:
                if place.next_ref <= now and place.maintenance_at(now) <= now:
                    place.maintain(now)
                    self._row_free = now + self._timing.tPRE
                    self._note_due()
                    return

    def _catch_up(self, now: float) -> None:
        """Refresh as often as was due in idle time: nothing else happened since."""
        for place in self._places:
            place.skip_refreshes(now)
        self._note_due()
        while True:
            following = min(place.maintenance_at(place.next_ref) for place in self._places)
            time = max(following, self._row_free)
            if time >= now:
                return
            self._refresh(time)

    def _note_due(self) -> None:
        self._due = min(place.next_ref for place in self._places)
