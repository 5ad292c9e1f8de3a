"""How long a closed loop of requests is expected to take, through the front end and the queues: see `dram_expected`."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Sequence

from kernbench_builtin.components.dram import DramGeometry
from kernbench_builtin.probe.dram_workload import READ, WRITE, AskedPlaces
from tests.builtin.probe.dram_recurrence import CommandBus
from tests.builtin.probe.dram_turns import AskedBursts, BurstQueues, WaitingBurst

#: Bursts of one pseudo-channel that the recurrence goes over, or so many periods of refresh.
_MOST_BURSTS = 6000
_PERIODS = 1.6


def served_in(asked: Sequence[AskedPlaces], g: DramGeometry, outstanding: int | None) -> float:
    """Return in what time (ns) a controller serves requests, so many of them under way at a time; else all at once.

    The queue that has most to do is the last to end. Where they are many, it follows from the first of them.
    """
    t = g.timing
    totals: dict[int, int] = {}
    for _, by_queue in asked:
        for number, places in by_queue.items():
            totals[number] = totals.get(number, 0) + len(places)
    every = 0.0 if math.isinf(t["tREFI"]) else t["tREFI"] / t["tCK"]
    # a stream meets the refresh of some banks and not of others: only all together are they alike
    alike = _PERIODS * every * (1.3 * g.banks if g.refresh == "per_bank" else 1)
    limit = g.queue_of * max(_MOST_BURSTS, math.ceil(alike / (t["tCCD_S"] / t["tCK"])))
    loop = ClosedLoop(asked, g, outstanding or len(asked))
    busiest = max(totals, key=lambda number: totals[number])
    loop.run(busiest, limit)
    clocks = 0.0
    for number, total in totals.items():
        times = loop.queues[number].served_at
        if total == len(times):
            clocks = max(clocks, max(times) + 1)
        elif times:
            clocks = max(clocks, min(times) + total / _pace(times, every))
    return g.overhead + clocks * t["tCK"] + t["tCL"] + t["tBL"]


class ClosedLoop:
    """Keep `most` requests under way: the next comes when one is answered, and goes through the front end.

    A read is answered when its last burst is served, a write when its last one is in its queue. A request of which a
    burst is not in its queue has one of the places of the front end; those without one wait in order.
    """

    def __init__(self, asked: Sequence[AskedPlaces], g: DramGeometry, most: int) -> None:
        clock = g.timing["tCK"]
        self._left = iter(asked)
        room = g.front_end or len(asked)
        #: Places of the front end that are free, and how many requests wait for one.
        self._room, self._waiting = max(0, room - most), max(0, most - room)
        #: Clocks from an answer to the next request, of a write and of a read from its last column command.
        again = g.overhead / clock
        self._again = {WRITE: math.ceil(again), READ: math.ceil(again + (g.timing["tCL"] + g.timing["tBL"]) / clock)}
        together = max(1, min(g.buses, g.channels) // g.queue_of)
        numbers = sorted({each for _, places in asked for each in places})
        buses = {number // together: CommandBus() for number in numbers}
        self.queues = {number: BurstQueues(g, buses[number // together]) for number in numbers}
        #: (clock, order, queue, burst that leaves), or a request that comes.
        self._events: list[tuple[float, int, int, WaitingBurst | AskedBursts]] = []
        self._order = 0
        for _ in range(min(room, most)):
            self._admit(0)

    def run(self, busiest: int, limit: int) -> None:
        """Go on until a queue has served so many bursts, or there are none."""
        events, served = self._events, self.queues[busiest].served_at
        while events and len(served) < limit:
            now = events[0][0]
            touched: set[int] = set()
            while events and events[0][0] == now:
                _, _, number, what = heapq.heappop(events)
                if isinstance(what, AskedBursts):
                    self._dispatch(what, touched)
                elif self.queues[number].is_left(what, now):
                    self._leave(self.queues[number], what)
                    touched.add(number)
            for number in sorted(touched):
                self._enter(number, now)
                for burst in self.queues[number].settle(now):
                    self._note(burst.leaves + 1, burst, number)

    def _note(self, at: float, what: WaitingBurst | AskedBursts, number: int = -1) -> None:
        self._order += 1
        heapq.heappush(self._events, (at, self._order, number, what))

    def _send(self, at: float) -> None:
        """Send the next request so that it comes at a clock."""
        if self._room:
            self._room -= 1
            self._admit(at)
        else:
            self._waiting += 1

    def _admit(self, at: float, here: int = -1) -> None:
        """Give a place of the front end to the next request, from a clock on; or from the one before, where all of its
        bursts go to the queue that gave the place back.
        """
        following = next(self._left, None)
        if following is not None:
            self._note(at - 1 if list(following[1]) == [here] else at, AskedBursts(*following))

    def _dispatch(self, request: AskedBursts, touched: set[int]) -> None:
        for number, places in request.places.items():
            self.queues[number].come(request, places)
            touched.add(number)

    def _leave(self, queue: BurstQueues, burst: WaitingBurst) -> None:
        queue.leave(burst)
        request = burst.request
        request.left -= 1
        if not request.left and request.kind == READ:
            self._send(request.last + self._again[READ])

    def _enter(self, number: int, now: float) -> None:
        for request in self.queues[number].enter():
            request.entering -= 1
            if request.entering:
                continue
            if self._waiting:
                self._waiting -= 1
                self._admit(now + 1, number if len(request.places) == 1 else -1)
            else:
                self._room += 1
            if request.kind == WRITE:
                self._send(now + self._again[WRITE])


def _pace(times: list[float], every: float) -> float:
    """Return the bursts of a clock in the long run: of whole periods of refresh, each with one in its middle."""
    times = sorted(times)
    whole = math.floor(times[-1] / every - 0.5) if every else 0
    if not whole:
        return len(times) / times[-1]
    first, last = every / 2, every * (whole + 0.5)
    return (bisect_right(times, last) - bisect_right(times, first)) / (last - first)
