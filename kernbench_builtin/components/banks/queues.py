"""The bursts that a scheduler chooses from: in order of arrival in front, and which kind's turn it is."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from kernbench_builtin.components.banks.mapping import BlockRun
from kernbench_builtin.components.banks.timing import CLOSED, NEVER, READ, WRITE, QueueSizes
from kernbench_core.messages import Transaction

#: What the bursts that wait for a bank need next.
NOTHING, COLUMN, ACTIVATION, PRECHARGE = 0, 1, 2, 3


class Gate:
    """Say from when on (ns) something that banks share allows a command."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at = 0.0


class Bank:
    """Keep the open row of a bank, when (ns) it allows a row command, and what its row took to open."""

    __slots__ = ("activate_at", "conflict", "gate", "number", "open", "opening", "precharge_at")

    def __init__(self, number: int, gate: Gate) -> None:
        self.number = number
        self.open = CLOSED
        self.activate_at = self.precharge_at = 0.0
        #: That of the activations of its group.
        self.gate = gate
        self.opening = 0.0
        self.conflict = False


class BankLine:
    """Hold the bursts of a kind that wait for a bank, oldest first, and when (ns) it allows a command for them.

    `rows` counts those that wait by row. `hit` is the oldest of the open row, None where there is none. Those in
    `waiting` that have their command are still there where an older one has not. `needs` is what they need next.
    """

    __slots__ = ("bank", "column_at", "gate", "hit", "kind", "needs", "number", "place", "rows", "waiting")

    def __init__(self, place: BurstPlace, kind: int, bank: Bank, gate: Gate) -> None:
        self.place = place
        self.kind = kind
        self.bank = bank
        self.number = bank.number
        self.column_at = 0.0
        #: That of the column commands of its kind to its bank group.
        self.gate = gate
        self.rows: dict[int, int] = {}
        self.waiting: deque[Burst] = deque()
        self.hit: Burst | None = None
        self.needs = NOTHING

    def find_hit(self, row: int) -> Burst | None:
        """Return the oldest burst of a row, and keep it."""
        for burst in self.waiting:
            if burst.row == row and not burst.issued:
                self.hit = burst
                return burst
        self.hit = None
        return None


class RequestProgress:
    """Keep how far a request is: its bursts, when it came, its data's first and last time, what its rows took to open.

    `entering` is how many queues have not all of its bursts yet, `waiting` how many bursts have no command.
    """

    __slots__ = ("end", "entering", "first", "head", "last", "msg", "opening", "runs", "tail", "waiting")

    def __init__(self, msg: Transaction, runs: list[BlockRun], first: float, tail: float) -> None:
        self.msg = msg
        self.runs = runs
        self.first = first
        self.tail = tail
        self.entering = 0
        self.waiting = len(runs[0][1]) if len(runs) == 1 else sum([len(places) for _, places in runs])
        self.head = NEVER
        self.end = self.opening = 0.0
        self.last: Any = None


class Burst:
    """Be one burst of a request, from its arrival (ns) to its column command; `seq` orders all of a controller."""

    __slots__ = ("at", "issued", "job", "last", "line", "row", "seq")

    def __init__(self, at: float, line: BankLine, row: int, job: RequestProgress, seq: int) -> None:
        self.at = at
        self.line = line
        self.row = row
        self.job = job
        self.seq = seq
        self.issued = False
        #: Whether it is the last of its request in this queue: when it is taken in is an answer's time.
        self.last = False


class Requests:
    """Be told how far requests are."""

    def taken(self, burst: Burst, now: float) -> None:
        """Take note that the last burst of a request is let in."""
        raise NotImplementedError

    def settled(
        self, place: BurstPlace, job: RequestProgress, number: int, start: float, end: float, opening: float
    ) -> None:
        """Take note that so many bursts of a read are settled, with data from `start` to `end`; `opening` is the
        longest that one of their rows took to open; all in ns.
        """
        raise NotImplementedError


class BurstPlace:
    """Be where bursts go: a pseudo-channel."""

    #: Where its bursts come from; set by the queue.
    queue: BurstQueue
    #: When the last column command that is settled comes.
    last_col: float

    def take_in(self, burst: Burst) -> None:
        """Let a burst be chosen from now on."""
        raise NotImplementedError

    def may_come(self, line: BankLine, row: int) -> float:
        """Return before when (ns) the next command for a burst of a row cannot come as things stand."""
        raise NotImplementedError

    def look_again(self) -> None:
        """Find when each kind of command may come, when it is the other kind's turn."""
        raise NotImplementedError


def whole_clocks(time: float, clock: float) -> float:
    """Return the first clock edge from `time` on, in ns; exact, as both are on the time grid."""
    rest = time % clock
    return time - rest + clock if rest else time


class BurstQueue:
    """Hold the bursts that a scheduler chooses from, reads and writes apart; those beyond its sizes wait in order.

    A burst has its place until the clock after its column command. Commands may be settled before their time: `leaving`
    has the times (ns) of those whose bursts still have a place. `requests` is told of the last burst of each request.
    """

    def __init__(self, sizes: QueueSizes, clock: float, places: Sequence[BurstPlace], requests: Requests) -> None:
        self.drain_from, self.drain_to = sizes.drain_from, sizes.drain_to
        self.places = list(places)
        self.mode = READ
        self.ingress: tuple[deque[Burst], deque[Burst]] = (deque(), deque())
        self.order: tuple[deque[Burst], deque[Burst]] = (deque(), deque())
        self.count = [0, 0]
        self.leaving: tuple[deque[float], deque[float]] = (deque(), deque())
        #: When (ns) to look at it, or at what its bursts wait for, again; kept by the channel.
        self.next = NEVER
        #: When (ns) it was looked at last.
        self.looked = -NEVER
        self._depth = [sizes.reads, sizes.writes]
        self._clock = clock
        self._requests = requests
        for place in places:
            place.queue = self

    def add(self, kind: int, bursts: list[Burst]) -> None:
        """Take bursts in the order in which they arrive; each counts from its own time on."""
        bursts[-1].last = True
        self.ingress[kind].extend(bursts)

    def add_one(self, kind: int, burst: Burst) -> None:
        """Take the only burst of a request."""
        burst.last = True
        self.ingress[kind].append(burst)

    def is_stuck(self, kind: int) -> bool:
        """Say whether nothing of a kind can come in before a command of it is given, and something waits for that."""
        return bool(self.ingress[kind]) and not self.leaving[kind] and self.count[kind] >= self._depth[kind]

    def look(self, now: float) -> None:
        """Let in what has arrived, and change the turn if it is time to."""
        self.looked = now
        count, leaving = self.count, self.leaving
        if not (self.mode == WRITE or self.ingress[WRITE] or count[WRITE] or leaving[WRITE]):
            if leaving[READ] or count[READ] < self._depth[READ]:
                self._admit(READ, now)
            return
        if self.mode == WRITE and not count[WRITE] and self._rests(now):
            self._turn()
        self.admit(now)
        if self.turns():
            self._turn()

    def _turn(self) -> None:
        self.mode = 1 - self.mode
        for place in self.places:
            place.look_again()

    def admit(self, now: float) -> None:
        """Let in what has arrived, where there is room."""
        self._admit(READ, now)
        self._admit(WRITE, now)

    def _admit(self, kind: int, now: float) -> None:
        leaving, ingress = self.leaving[kind], self.ingress[kind]
        while leaving and leaving[0] < now:
            leaving.popleft()
        room = before = self._depth[kind] - self.count[kind] - len(leaving)
        order = self.order[kind]
        while room > 0 and ingress:
            burst: Burst = ingress[0]
            if burst.at > now:
                break
            ingress.popleft()
            room -= 1
            order.append(burst)
            burst.line.place.take_in(burst)
            if burst.last:
                self._requests.taken(burst, now)
        self.count[kind] += before - room

    def turns(self) -> bool:
        """Say whether it is the other kind's turn: writes go from the upper mark on or when no read waits, to the lower
        mark or the last one.
        """
        count, leaving = self.count, self.leaving
        writes = count[WRITE] + len(leaving[WRITE])
        if self.mode == READ:
            return writes > 0 and (writes >= self.drain_from or not (count[READ] or leaving[READ]))
        return not writes or (writes <= self.drain_to and bool(count[READ] or leaving[READ]))

    def _rests(self, now: float) -> bool:
        """Say whether there was no write at the clock before `now`, so that it was the turn of reads then."""
        before, ingress = now - self._clock, self.ingress[WRITE]
        if ingress and ingress[0].at <= before:
            return False
        return max([place.last_col for place in self.places]) < before

    def certain(self, kind: int) -> bool:
        """Say whether those whose turn it is keep it as far as what is known tells, and have one pseudo-channel."""
        if len(self.places) > 1:
            return False
        if kind == WRITE:
            return True
        return self.count[WRITE] + len(self.leaving[WRITE]) + len(self.ingress[WRITE]) < self.drain_from

    def next_change(self, now: float, command: float, hurried: bool) -> float:
        """Return when what comes or goes here may change anything: at the latest with the next `command` (ns).

        With `hurried`, somebody waits for the last burst of a read to be let in.
        """
        mode = self.mode
        other = 1 - mode
        ingress, leaving, count = self.ingress, self.leaving[mode], self.count
        if count[other] or self.leaving[other] or ingress[other]:
            if self.turns():
                return now + self._clock
            if leaving and leaving[-1] + self._clock < command:
                command = leaving[-1] + self._clock  # the other kind may have its turn then
            if ingress[other]:
                command = self._next_turn(other, now, command, hurried)
        if ingress[mode] and (leaving or count[mode] < self._depth[mode]):
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
            if writes > self.drain_to:
                needed = NEVER
        elif count[READ] or leaving[READ]:
            needed = self.drain_from - writes
        if self.is_stuck(kind):
            return before
        answers = hurried or kind == WRITE
        arrival, room = now + self._clock, self._room(kind)
        for number, burst in enumerate(self.ingress[kind]):
            arrival = self._comes(burst, arrival, number - room, leaving[kind])
            if arrival >= before:
                break
            if number + 1 >= needed or (burst.last and answers):
                return arrival
        return before

    def _next_arrival(self, kind: int, now: float, before: float, hurried: bool) -> float:
        """Return when the arrival of those whose turn it is changes anything; at the latest `before`.

        One that neither ends a write nor can have a command when it is let in may as well be let in later.
        """
        answers = hurried or kind == WRITE
        seen: set[tuple[BankLine, int]] | None = None
        arrival, room, leaving = now + self._clock, self._room(kind), self.leaving[kind]
        for number, burst in enumerate(self.ingress[kind]):
            arrival = self._comes(burst, arrival, number - room, leaving)
            if arrival >= before:
                break
            if burst.last and answers:
                return arrival
            line, row = burst.line, burst.row
            if seen is None:
                seen = set()
            if (line, row) not in seen:  # a later one of the same row can have nothing earlier
                seen.add((line, row))
                time = line.place.may_come(line, row)
                if time < before:
                    before = time if time > arrival else arrival
        return before

    def _room(self, kind: int) -> int:
        """Return how many more bursts there are places for."""
        return self._depth[kind] - self.count[kind] - len(self.leaving[kind])

    def _comes(self, burst: Burst, arrival: float, slot: int, leaving: deque[float]) -> float:
        """Return when (ns) a burst in front comes in before another command is given.

        `arrival` is when the one before it does; it takes the place `slot` of those that leave, from 0 on.
        """
        if burst.at > arrival:
            arrival = whole_clocks(burst.at, self._clock)
        if slot >= 0:
            free = leaving[slot] + self._clock if slot < len(leaving) else NEVER
            if free > arrival:
                arrival = free
        return arrival
