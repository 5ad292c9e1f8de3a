"""What reads that come at given times are expected to take, by the recurrence of `dram_expected`."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable, Iterator

import attrs

from kernbench_builtin.components.dram import DramGeometry
from kernbench_builtin.probe.dram_workload import READ, RowPlace, places_of
from kernbench_core.units import GRID_NS
from kernbench_core.values import Region
from tests.builtin.probe.dram_recurrence import CommandBus, Recurrence

#: Bursts that the recurrence goes over.
_MOST_BURSTS = 100_000

Regions = tuple[Region, ...]


@attrs.define(eq=False)
class _Read:
    """One read: when it was sent (ns), how many bursts are left and how many of them are not in their queues.

    `alone` says that it has bursts of one pseudo-channel only. `last` is the clock of its last column command so far.
    """

    sent: float
    left: int
    entering: int
    alone: bool
    last: float = 0.0


def mean_latency(reads: Iterable[tuple[float, Regions]], g: DramGeometry, chain: Iterator[Regions] | None) -> float:
    """Return the mean of what reads at given times (ns, rising) take, in ns, or of a chain beside them.

    Each of a chain is sent just after the one before is answered, from 0 ns on, until the others are.
    """
    loop = _Loop(g)
    linked = loop.send(0.0, next(chain)) if chain is not None else None
    others: list[_Read] = []
    links: list[float] = []
    for time, regions in reads:
        while chain is not None and linked is not None and loop.answered_by(linked, time):
            links.append(loop.latency(linked))
            linked = loop.send(linked.sent + links[-1] + GRID_NS, next(chain))
        loop.settle(loop.clock(time))
        others.append(loop.send(time, regions))
        if loop.bursts > _MOST_BURSTS:
            break
    while chain is not None and linked is not None:
        loop.answered_by(linked, math.inf)
        links.append(loop.latency(linked))
        following = linked.sent + links[-1] + GRID_NS
        loop.settle(loop.clock(following))
        if all(not each.left and each.sent + loop.latency(each) <= following for each in reversed(others)):
            break
        linked = loop.send(following, next(chain))
    loop.settle(math.inf)
    took = links or [loop.latency(each) for each in others]
    return sum(took) / len(took)


class _Loop:
    """Answer reads in the order of their times."""

    def __init__(self, g: DramGeometry) -> None:
        self._g = g
        together = max(1, g.buses)
        buses = [CommandBus() for _ in range(0, g.channels, together)]
        self._places = {channel: _Waiting(g, buses[channel // together]) for channel in range(g.channels)}
        #: Places of the front end that are free, and the reads that wait for one, each from its clock on.
        self._room = g.front_end or math.inf
        self._front: deque[tuple[float, dict[int, list[RowPlace]], _Read]] = deque()
        self.bursts = 0

    def clock(self, time: float) -> float:
        """Return the clock from which on a read that is sent at `time` (ns) is there."""
        if math.isinf(time):
            return time
        return math.ceil((time + self._g.overhead) / self._g.timing["tCK"] - 1e-9)

    def send(self, time: float, regions: Regions) -> _Read:
        """Send a read at `time` (ns), not before what was sent or settled."""
        by_channel = places_of(regions, self._g)
        number = sum(len(places) for places in by_channel.values())
        read = _Read(time, number, number, len(by_channel) == 1)
        self.bursts += number
        self._front.append((self.clock(time), by_channel, read))
        if self._room:
            self._room -= 1
            self._admit(0.0)
        return read

    def _admit(self, at: float, here: _Waiting | None = None) -> None:
        """Let the first read that waits go to the queues, from a clock on, or to `here` from the one before."""
        came, by_channel, read = self._front.popleft()
        for channel, places in by_channel.items():
            queue = self._places[channel]
            for place in places:
                queue.come(place, max(at - 1 if queue is here else at, came), read)

    def _enter(self, waiting: _Waiting, at: float) -> None:
        """Let a burst into its queue; the last one of a read frees a place of the front end."""
        read = waiting.enter(at)
        read.entering -= 1
        if read.entering:
            return
        if self._front:
            self._admit(at + 1, waiting if read.alone else None)
        else:
            self._room += 1

    def settle(self, until: float) -> bool:
        """Let bursts in and open the rows that they wait for, in the order of time until a clock; say if any was."""
        settled = False
        while True:
            due, bank, place = min(((*each.next(), each) for each in self._places.values()), key=lambda found: found[0])
            if due > until or math.isinf(due):
                return settled
            self._enter(place, due) if bank < 0 else place.open(bank)
            settled = True

    def answered_by(self, read: _Read, time: float) -> bool:
        """Settle what comes before the answer of a read or before `time` (ns); say whether the answer is the first."""
        while read.left:
            due = min(place.next()[0] for place in self._places.values())
            if due > self.clock(time) or not self.settle(due):
                return False
        return read.sent + self.latency(read) <= time

    def latency(self, read: _Read) -> float:
        """Return what a read that is answered took, in ns."""
        t = self._g.timing
        return read.last * t["tCK"] + t["tCL"] + t["tBL"] - read.sent


class _Waiting:
    """The bursts of one pseudo-channel: in front of its queue, and by bank while another row is open; each in order."""

    def __init__(self, g: DramGeometry, bus: CommandBus) -> None:
        assert g.window is not None
        self._window = -(-g.window[0] // g.queue_of)
        self._recurrence = Recurrence(g, bus)
        self._leave: list[float] = []
        self._inside = 0
        self._entering: deque[tuple[RowPlace, float, _Read]] = deque()
        self._waiting: dict[int, deque[tuple[RowPlace, float, _Read]]] = {}

    def come(self, place: RowPlace, at: float, read: _Read) -> None:
        """Take a burst that comes at clock `at`."""
        self._entering.append((place, at, read))

    def _enters(self) -> float:
        """Return at which clock the next burst enters the queue; never is infinite."""
        if not self._entering:
            return math.inf
        at = self._entering[0][1]
        if self._inside < self._window:
            return at
        return max(at, self._leave[0]) if self._leave else math.inf

    def enter(self, at: float) -> _Read:
        """Let a burst into the queue at a clock, and return its read.

        Where another row is open, or will be before it can have its column command, it waits until that may be closed.
        """
        place, _, read = self._entering.popleft()
        if self._inside < self._window:
            self._inside += 1
        else:
            heapq.heappop(self._leave)
        waiting = self._waiting.get(place[0])
        row, closable = self._recurrence.row_until(place[0], at)
        goes = not waiting or self._recurrence.hit_at(place[0], at) < closable
        if (row == place[1] and goes) or (row < 0 and not waiting):
            self._serve(place, at, read)
        elif waiting:
            waiting.append((place, at, read))
        else:
            self._waiting[place[0]] = deque([(place, at, read)])
        return read

    def _serve(self, place: RowPlace, at: float, read: _Read) -> None:
        leaves, column = self._recurrence.column(READ, place, at)
        heapq.heappush(self._leave, leaves + 1)
        read.left -= 1
        read.last = max(read.last, column)

    def next(self) -> tuple[float, int]:
        """Return at which clock which bank may be closed for a burst that waits, -1 when one enters; never is inf."""
        found = [(self._recurrence.row_until(bank, each[0][1])[1], bank) for bank, each in self._waiting.items()]
        return min([(self._enters(), -1), *found])

    def open(self, bank: int) -> None:
        """Open the row of the oldest burst that waits for a bank, for all that wait for that row."""
        waiting = self._waiting.pop(bank)
        row = waiting[0][0][1]
        for place, at, read in waiting:
            if place[1] == row:
                self._serve(place, at, read)
        left = deque(each for each in waiting if each[0][1] != row)
        if left:
            self._waiting[bank] = left
