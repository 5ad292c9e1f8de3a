"""One channel: pseudo-channels that share a row-command and a column-command bus, clock by clock."""

from __future__ import annotations

from heapq import heappush

from kernbench_builtin.components.banks.pseudo_channel import PseudoChannel
from kernbench_builtin.components.banks.queues import Burst, BurstQueue, whole_clocks
from kernbench_builtin.components.banks.timing import ALL, NEVER, NONE
from kernbench_core.environment import DELIVERY, Environment
from kernbench_core.events.queue import COMPILED, Scheduled


class _Wake(Scheduled):
    """Be the event that wakes a channel; one that was overtaken by an earlier one does nothing."""

    __slots__ = ("time",)

    _ok = True
    _value = None

    def __init__(self) -> None:
        self.time = 0.0


class BankChannel:
    """Give the commands of the pseudo-channels of a channel, at most one on each bus at a time.

    At each clock: what has arrived is let into the queues; one column command goes, of the pseudo-channel whose last
    one was the shortest possible time before, else the oldest; one row command goes, of a refresh that is due, else the
    oldest. A clock at which nothing can happen costs nothing.
    """

    __slots__ = (
        "_beat", "_clock", "_due", "_pending", "_places", "_pre_takes", "_queues", "_row_free", "_settled", "_spare",
        "_time", "_wake_at", "_woken", "hurried",
    )  # fmt: skip

    def __init__(self, env: Environment, places: list[PseudoChannel], queues: list[BurstQueue]) -> None:
        #: Whether a request waits for the last burst of a read to be let in.
        self.hurried = False
        self._time = env.clock
        self._places = places
        self._queues = queues
        timing = places[0].timing
        self._clock, self._beat, self._pre_takes = timing.tCK, timing.tCCD_S, timing.tPRE
        self._row_free = 0.0
        #: When the last column command comes that is settled.
        self._settled = -NEVER
        self._wake_at = NEVER
        #: Those that are to happen, and those that have and may be taken again.
        self._pending: list[_Wake] = []
        self._spare: list[_Wake] = []
        self._woken = (self._on_wake,)
        self._due = 0.0
        self._note_due()

    def wake(self, time: float, queue: BurstQueue) -> None:
        """Look at a queue at the first clock from `time` on (ns; not in the past) that was not looked at."""
        rest = time % self._clock
        if rest:
            time = time - rest + self._clock
        if time <= queue.looked:
            time = queue.looked + self._clock
        if time < queue.next:
            queue.next = time
        if time < self._wake_at:
            self._schedule(time)

    def hurry(self, time: float) -> None:
        """Have the last burst of each read let in on time, from `time` on (ns)."""
        self.hurried = True
        for queue in self._queues:
            self.wake(time, queue)

    def let_in_before(self, time: float) -> None:
        """Let in what had room before the first clock from `time` on (ns): nobody needed to know when it came in."""
        before = whole_clocks(time, self._clock) - self._clock
        for queue in self._queues:
            if before > queue.looked:
                queue.admit(before)

    def _schedule(self, time: float) -> None:
        """Wake at a time (ns) before which nothing else does."""
        self._wake_at = time
        for event in self._pending:
            if event.time == time:
                return
        event = self._spare.pop() if self._spare else _Wake()
        self._pending.append(event)
        self._push(event, time)

    def _push(self, event: _Wake, time: float) -> None:
        event.time = time
        event.callbacks = self._woken
        queue = self._time
        queue.injected += 1
        if COMPILED:
            queue.push(time, DELIVERY, queue.injected, event)
        else:
            heappush(queue, (time, DELIVERY, queue.injected, event))

    def _on_wake(self, event: _Wake) -> None:
        now = event.time
        if now != self._wake_at:
            self._pending.remove(event)
            self._spare.append(event)
            return
        self._wake_at = NEVER
        if self._due <= now:
            self._maintain(now)
        time = self._give(now)
        if self._due < time:
            time = self._before_refresh(time, now)
        if time < self._wake_at and len(self._pending) == 1:
            self._wake_at = event.time = time  # inlined from _push for speed (tools/bench_engine.py: random reads -1 %)
            event.callbacks = self._woken
            queue = self._time
            queue.injected = key = queue.injected + 1
            if COMPILED:
                queue.push(time, DELIVERY, key, event)
            else:
                heappush(queue, (time, DELIVERY, key, event))
            return
        self._pending.remove(event)
        self._spare.append(event)
        if time < self._wake_at:
            self._schedule(time)

    def _next(self, queue: BurstQueue, now: float) -> float:
        """Note and return when to look at a queue again: at its next command, or before it where an arrival matters."""
        time, row_free, due = NEVER, self._row_free, self._due <= now
        place: PseudoChannel
        for place in queue.places:  # type: ignore[assignment]
            if due and place.next_ref <= now and place.blocked() == ALL:
                if place.openers and place.column_at < time:
                    time = place.column_at
                continue
            row_at = place.activate_at
            if place.precharge_at < row_at:
                row_at = place.precharge_at
            if row_at < row_free:
                row_at = row_free
            if row_at < time:
                time = row_at
            if place.column_at < time:
                time = place.column_at
        if time < now + self._clock:
            time = now + self._clock
        turn = queue.turn
        if not queue.only_reads or (turn.arriving and (turn.leaving or turn.count < turn.depth)):
            time = queue.next_change(now, time, self.hurried)
        queue.next = time
        return time

    def _before_refresh(self, time: float, now: float) -> float:
        """Return when to wake, at `time` or before it for a refresh, while anything is in a queue."""
        for place in self._places:
            if place.openers or place.queue.reads.count or place.queue.writes.count:
                return min(time, self._next_maintenance(now))
        return time

    def _next_maintenance(self, now: float) -> float:
        """Return when the next command of a refresh may come; before one is due, when it is."""
        first, found = max(self._row_free, now + self._clock), NEVER
        for place in self._places:
            time = place.next_ref if place.next_ref > now else max(place.maintenance_at(now), first)
            found = min(found, time)
        return found

    # Buses ----------------------------------------------------------------------------------------

    def _give(self, now: float) -> float:
        """Look at those queues that are to be looked at, and give the commands of this clock, of their places; return
        when to look at one again.
        """
        column: Burst | None = None
        columns = self._places[0]
        bus, due, blocked, following = False, self._due <= now, NONE, NEVER
        for place in self._places:
            queue = place.queue
            if queue.next > now:
                continue
            if queue.looked < now:
                reads = queue.reads
                if queue.only_reads and not reads.leaving and reads.count >= reads.depth:
                    queue.looked = now  # inlined from look for speed (tools/bench_engine.py: random reads -2 %)
                else:
                    queue.look(now)
            if due:
                blocked = NONE if place.next_ref > now else place.blocked()
            if place.column_at <= now:
                burst = place.column(now, blocked)
                if burst is not None and (column is None or self._goes_before(place, burst, columns, column, now)):
                    columns, column = place, burst
            if place.activate_at <= now or place.precharge_at <= now:
                bus = True
        if column is not None and (now > self._settled or not self._is_settled(now)):
            columns.give_columns(column, now)
            if columns.last_col > self._settled:
                self._settled = columns.last_col
        if bus and self._row_free <= now:
            self._give_row(now)
        for queue in self._queues:
            time = queue.next if queue.next > now else self._next(queue, now)
            if time < following:
                following = time
        return following

    def _give_row(self, now: float) -> None:
        """Give the row command of this clock, if there is one: a column command of it may keep a row open."""
        row: Burst | None = None
        rows, blocked = self._places[0], NONE
        for place in self._places:
            if place.queue.next > now or (place.activate_at > now and place.precharge_at > now):
                continue
            if self._due <= now:
                blocked = NONE if place.next_ref > now else place.blocked()
                if blocked == ALL:
                    continue
            burst = place.row(now, blocked)
            if burst is not None and (row is None or burst.seq < row.seq):
                rows, row = place, burst
        if row is not None:
            self._row_free = rows.give_row(row, now)

    def _goes_before(self, place: PseudoChannel, burst: Burst, other: PseudoChannel, its: Burst, now: float) -> bool:
        """Say whether one of two column commands of one clock goes before the other."""
        beat = now - self._beat
        if (place.last_col == beat) != (other.last_col == beat):
            return place.last_col == beat
        return burst.seq < its.seq

    def _is_settled(self, now: float) -> bool:
        """Say whether the clock of a column command went to one that was settled before."""
        for place in self._places:
            ahead = place.last_col - now
            if ahead >= 0.0 and not ahead % self._beat:
                return True
        return False

    # Refresh --------------------------------------------------------------------------------------

    def _maintain(self, now: float) -> None:
        """Refresh what is due: with what is there by now, and what it changes is looked at again."""
        if self._due < now:
            self._catch_up(now)
        for queue in self._queues:
            if queue.next <= now:
                queue.look(now)
        if self._due <= now:
            self._refresh(now)

    def _refresh(self, now: float) -> None:
        """Give one command of a refresh that is due, if the bus is free."""
        if self._row_free <= now:
            for place in self._places:
                if place.next_ref <= now and place.maintenance_at(now) <= now:
                    place.maintain(now)
                    place.queue.next = now
                    self._row_free = now + self._pre_takes
                    self._note_due()
                    return

    def _catch_up(self, now: float) -> None:
        """Refresh as often as was due in idle time: nothing else happened since."""
        while True:
            for place in self._places:
                place.skip_refreshes(now)
            self._note_due()
            following = min([place.maintenance_at(place.next_ref) for place in self._places])
            time = max(following, self._row_free)
            if time >= now:
                return
            self._refresh(time)

    def _note_due(self) -> None:
        self._due = min([place.next_ref for place in self._places])
