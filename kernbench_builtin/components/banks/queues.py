"""The bursts that a scheduler chooses from: in order of arrival in front, and which kind's turn it is."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Sequence
from typing import TypeAlias

from kernbench_builtin.components.banks.mapping import BlockRun
from kernbench_builtin.components.banks.timing import CLOSED, NEVER, READ, WRITE, QueueSizes
from kernbench_core.messages import Transaction

#: A burst behind its `seq`, so that lists of them sort by age.
Ranked: TypeAlias = "tuple[int, Burst]"


class Gate:
    """Say from when on (ns) something that banks share allows a command."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at = 0.0


class Bank:
    """Keep the open row of a bank, when (ns) it allows a row command, and what its row took to open.

    `opener` is the burst that its row was opened for, until it has its column command: before, `precharge_at` is never,
    and `held` is what it will be.
    """

    __slots__ = ("activate_at", "conflict", "gate", "held", "number", "open", "opener", "opening", "precharge_at")

    def __init__(self, number: int, gate: Gate) -> None:
        self.number = number
        self.open = CLOSED
        self.activate_at = self.precharge_at = self.held = 0.0
        self.opener: Burst | None = None
        #: That of the activations of its group.
        self.gate = gate
        self.opening = 0.0
        self.conflict = False


class BankLine:
    """Hold the bursts of a kind that wait for a bank, oldest first, and when (ns) it allows a command for them.

    `rows` counts those that wait by row. `hit` is the oldest of the open row; None where there is none, and where
    nobody has asked. Those in `waiting` that have their command are still there where an older one has not. `among` is
    what needs a column command or an activation next, with `entry` of this line; None where it needs none, or it is not
    its turn. `closing` is its entry among those that need a precharge, None without: its oldest burst is of another
    row than the open one.
    """

    __slots__ = (
        "among", "bank", "closing", "column_at", "entry", "gate", "hit", "kind", "number", "place", "rows", "waiting",
    )  # fmt: skip

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
        self.among: list[Ranked] | None = None
        self.entry: Ranked | None = None
        self.closing: Ranked | None = None

    def move(self, to: list[Ranked], burst: Burst) -> None:
        """Be among those that need another command next, with the burst that is to have it."""
        if self.among is not None:
            self.among.remove(self.entry)  # type: ignore[arg-type]
        self.entry = entry = burst.seq, burst
        insort(to, entry)
        self.among = to

    def leave(self) -> None:
        """Need neither a column command nor an activation."""
        if self.among is not None:
            self.among.remove(self.entry)  # type: ignore[arg-type]
            self.among = None

    def wait_to_close(self, among: list[Ranked]) -> None:
        """Be among those that need a precharge, with the oldest burst."""
        oldest: Burst = self.waiting[0]
        if self.closing is not None:
            if self.closing[1] is oldest:
                return
            among.remove(self.closing)
        self.closing = oldest.seq, oldest
        insort(among, self.closing)

    def stop_closing(self, among: list[Ranked]) -> None:
        """Need no precharge."""
        if self.closing is not None:
            among.remove(self.closing)
            self.closing = None

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

    `entering` is how many queues have not all of its bursts yet, `alone` whether all go to one queue, `waiting` how
    many bursts have no command.
    """

    __slots__ = ("alone", "end", "entering", "first", "head", "last", "msg", "opening", "runs", "tail", "waiting")

    alone: bool
    entering: int
    head: float
    end: float
    opening: float

    def __init__(self, msg: Transaction, runs: list[BlockRun], first: float, tail: float) -> None:
        self.msg = msg
        self.runs = runs
        self.first = first
        self.tail = tail
        self.waiting = len(runs[0][1]) if len(runs) == 1 else sum([len(places) for _, places in runs])
        #: Where its last data comes from; None where no burst is settled, and the other times have no value.
        self.last: BurstPlace | None = None


class Burst:
    """Be one burst of a request, from its arrival (ns) to its column command; `seq` orders all of a controller."""

    __slots__ = ("at", "issued", "job", "last", "line", "row", "seq")

    def __init__(
        self, at: float, line: BankLine, row: int, job: RequestProgress, seq: int, last: bool = False
    ) -> None:
        self.at = at
        self.line = line
        self.row = row
        self.job = job
        self.seq = seq
        self.issued = False
        #: Whether it is the last of its request in this queue: when it is taken in is an answer's time.
        self.last = last


class Requests:
    """Be told how far requests are."""

    __slots__ = ()

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

    __slots__ = ("last_col", "queue")

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


class Side:
    """Hold the bursts of a kind that are in a queue, and those in front of it that wait for a place.

    `arriving` are in front, in order of arrival; `order` those in the queue, oldest first, with some that have their
    command already; `count` says how many have a place: a burst leaves it with its column command, or with the
    activation of its row. Commands may be settled before their time: `leaving` has the times (ns) of those whose bursts
    still have a place, as each keeps it until the clock after its command. `left` is when the last one left.
    """

    __slots__ = ("arriving", "count", "depth", "kind", "leaving", "left", "order")

    def __init__(self, kind: int, depth: int) -> None:
        self.kind = kind
        self.depth = depth
        self.count = 0
        self.arriving: deque[Burst] = deque()
        self.order: deque[Burst] = deque()
        self.leaving: deque[float] = deque()
        self.left = -NEVER

    def is_empty(self) -> bool:
        """Say whether nothing is here, or is about to be."""
        return not (self.count or self.arriving or self.leaving)

    def is_stuck(self) -> bool:
        """Say whether nothing can come in before a command is given, and something waits for that."""
        return bool(self.arriving) and not self.leaving and self.count >= self.depth

    def room(self) -> int:
        """Return how many more bursts there are places for."""
        return self.depth - self.count - len(self.leaving)

    def comes(self, burst: Burst, arrival: float, slot: int, clock: float) -> float:
        """Return when (ns) a burst in front comes in before another command is given.

        `arrival` is when the one before it does; it takes the place `slot` of those that leave, from 0 on.
        """
        if burst.at > arrival:
            arrival = whole_clocks(burst.at, clock)
        if slot >= 0:
            free = self.leaving[slot] + clock if slot < len(self.leaving) else NEVER
            if free > arrival:
                arrival = free
        return arrival


class BurstQueue:
    """Hold the bursts that a scheduler chooses from, reads and writes apart; those beyond its sizes wait in order.

    `turn` are those whose turn it is. `requests` is told of the last burst of each request.
    """

    __slots__ = (
        "_clock", "_requests", "drain_from", "drain_to", "is_alone", "looked", "next", "only_reads", "places", "reads",
        "sides", "turn", "writes",
    )  # fmt: skip

    def __init__(self, sizes: QueueSizes, clock: float, places: Sequence[BurstPlace], requests: Requests) -> None:
        self.drain_from, self.drain_to = sizes.drain_from, sizes.drain_to
        self.places = list(places)
        #: Whether it is of one pseudo-channel.
        self.is_alone = len(self.places) == 1
        self.reads, self.writes = Side(READ, sizes.reads), Side(WRITE, sizes.writes)
        self.sides = self.reads, self.writes
        self.turn = self.reads
        #: Whether it is sure that there is no write, and that it is the turn of reads.
        self.only_reads = True
        #: When (ns) to look at it, or at what its bursts wait for, again; kept by the channel.
        self.next = NEVER
        #: When (ns) it was looked at last.
        self.looked = -NEVER
        self._clock = clock
        self._requests = requests
        for place in places:
            place.queue = self

    def add(self, kind: int, bursts: list[Burst]) -> None:
        """Take bursts in the order in which they arrive; each counts from its own time on."""
        bursts[-1].last = True
        self.sides[kind].arriving.extend(bursts)
        if kind == WRITE:
            self.only_reads = False

    def look(self, now: float) -> None:
        """Let in what has arrived, and change the turn if it is time to."""
        self.looked = now
        if not self.only_reads:
            self.only_reads = self.turn is self.reads and self.writes.is_empty()
        if self.only_reads:
            reads = self.reads
            if reads.leaving or reads.count < reads.depth:
                self._admit(reads, now)
            if self.only_reads:
                return
        elif self.turn is self.writes and not self.writes.count and self._rests(now):
            self._turn()
        self.admit(now)
        if self.turns():
            self._turn()

    def _turn(self) -> None:
        self.turn = self.writes if self.turn is self.reads else self.reads
        for place in self.places:
            place.look_again()

    def admit(self, now: float) -> None:
        """Let in what has arrived, where there is room: with a write the next read may come, and so on."""
        self._admit(self.reads, now)
        while self._admit(self.writes, now):
            self._admit(self.reads, now)

    def _admit(self, side: Side, now: float) -> bool:
        """Let in those of a kind, and say whether there were any."""
        leaving, arriving, order = side.leaving, side.arriving, side.order
        while leaving and leaving[0] < now:
            leaving.popleft()
        room = before = side.depth - side.count - len(leaving)
        while room > 0 and arriving:
            burst: Burst = arriving[0]
            if burst.at > now:
                break
            arriving.popleft()
            room -= 1
            order.append(burst)
            burst.line.place.take_in(burst)
            if burst.last:
                self._requests.taken(burst, now)
        side.count += before - room
        return room < before

    def turns(self) -> bool:
        """Say whether it is the other kind's turn: writes go from the upper mark on or when no read waits, to the lower
        mark or the last one.
        """
        reads = bool(self.reads.count or self.reads.leaving)
        writes = self.writes.count + len(self.writes.leaving)
        if self.turn is self.reads:
            return writes > 0 and (writes >= self.drain_from or not reads)
        return not writes or (writes <= self.drain_to and reads)

    def _rests(self, now: float) -> bool:
        """Say whether there was no write at the clock before `now`, so that it was the turn of reads then."""
        before, arriving = now - self._clock, self.writes.arriving
        if arriving and arriving[0].at <= before:
            return False
        return self.writes.left < before

    def certain(self) -> bool:
        """Say whether those whose turn it is keep it as far as what is known tells."""
        if self.only_reads or self.turn is self.writes:
            return True
        writes = self.writes
        return writes.count + len(writes.leaving) + len(writes.arriving) < self.drain_from

    def next_change(self, now: float, command: float, hurried: bool) -> float:
        """Return when what comes or goes here may change anything: at the latest with the next `command` (ns).

        With `hurried`, somebody waits for the last burst of a read to be let in.
        """
        turn = self.turn
        if not self.only_reads:
            other = self.writes if turn is self.reads else self.reads
            if not other.is_empty():
                if self.turns():
                    return now + self._clock
                if turn.leaving and turn.leaving[-1] + self._clock < command:
                    command = turn.leaving[-1] + self._clock  # the other kind may have its turn then
                if other.arriving:
                    command = self._next_turn(other, now, command, hurried)
        if turn.arriving and (turn.leaving or turn.count < turn.depth):
            return self._next_arrival(turn, now, command, hurried)
        return command

    def _next_turn(self, side: Side, now: float, before: float, hurried: bool) -> float:
        """Return when the arrival of those whose turn it is not changes anything; at the latest `before`.

        It is their turn with so many writes, or with the first where none of those whose turn it is are left to go
        before; and the last burst of a write is an answer.
        """
        reads, clock = self.reads, self._clock
        writes = self.writes.count + len(self.writes.leaving)
        needed: float = 1
        if side is reads:
            if writes > self.drain_to:
                needed = NEVER
        elif reads.count or reads.leaving:
            needed = self.drain_from - writes
        if side.is_stuck():
            return before
        answers = hurried or side is not reads
        arrival, room = now + clock, side.room()
        for number, burst in enumerate(side.arriving):
            arrival = side.comes(burst, arrival, number - room, clock)
            if arrival >= before:
                break
            if number + 1 >= needed or (burst.last and answers):
                return arrival
        return before

    def _next_arrival(self, side: Side, now: float, before: float, hurried: bool) -> float:
        """Return when the arrival of those whose turn it is changes anything; at the latest `before`.

        One that neither ends a write nor can have a command when it is let in may as well be let in later.
        """
        answers = hurried or side is self.writes
        clock = self._clock
        seen: set[tuple[BankLine, int]] | None = None
        arrival, room = now + clock, side.room()
        for number, burst in enumerate(side.arriving):
            arrival = side.comes(burst, arrival, number - room, clock)
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
