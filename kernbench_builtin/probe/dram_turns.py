"""Whose turn it is in a closed loop of reads and writes, and so what a saturated controller is expected to reach."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping

import attrs

from kernbench_builtin.components.dram import DramGeometry
from kernbench_builtin.probe.dram_recurrence import Recurrence
from kernbench_builtin.probe.dram_workload import READ, WRITE, RequestPart, RowPlace

#: Bursts of one pseudo-channel that the recurrence goes over, or so many periods of refresh.
_MOST_BURSTS = 6000
_PERIODS = 1.6


@attrs.define(eq=False)
class ClosedLoop:
    """Count what is under way at one pseudo-channel: `most` requests, a new one for each answer.

    A read is answered when its last burst is served, a write when its last one is in the queue; in order of age.
    """

    parts: deque[RequestPart]
    most: int
    window: tuple[int, int]
    limit: int
    bursts: tuple[list[RowPlace], list[RowPlace]] = attrs.field(factory=lambda: ([], []))
    served: list[int] = attrs.field(factory=lambda: [0, 0])
    sent: list[int] = attrs.field(factory=lambda: [0, 0])
    _ends: tuple[deque[int], deque[int]] = attrs.field(factory=lambda: (deque(), deque()))

    def fill(self) -> None:
        """Answer what is done, and send what follows."""
        while True:
            reads, writes = self._ends
            while reads and reads[0] <= self.served[READ]:
                reads.popleft()
            while writes and writes[0] <= self.served[WRITE] + self.window[WRITE]:
                writes.popleft()
            if not self.parts or len(reads) + len(writes) >= self.most:
                return
            kind, bursts = self.parts.popleft()
            self.bursts[kind].extend(bursts)
            self.sent[kind] += len(bursts)
            self._ends[kind].append(self.sent[kind])

    def queued(self, kind: int) -> int:
        """Return how many bursts of a kind are in its queue."""
        return min(self.window[kind], self.sent[kind] - self.served[kind])

    def turn(self, kind: int, drain: tuple[int, int]) -> int:
        """Go on to the end of the turn of a kind, and return how many bursts it has."""
        before = self.served[kind]
        self.fill()
        while self.queued(kind) and sum(self.served) < self.limit:
            reads, writes = self.queued(READ), self.queued(WRITE)
            if writes >= drain[0] if kind == READ else reads and writes <= drain[1]:
                break
            self.served[kind] += 1
            self.fill()
        return self.served[kind] - before


def served_in(parts: Mapping[int, list[RequestPart]], g: DramGeometry, requests: int, outstanding: int | None) -> float:
    """Return in what time (ns) a controller serves what each pseudo-channel is asked by so many requests.

    So many of them are `outstanding` at a time; without a number, as many as can be. The pseudo-channel that has most
    to do is the last to end.
    """
    t, touched = g.timing, sum(len(asked) for asked in parts.values()) / requests
    inside = _inside(parts, g, requests)
    if outstanding is not None:
        inside = min(inside, outstanding)
    most = max(1, round(inside * touched / len(parts)))
    return g.overhead + max(_took(asked, g, most) for asked in parts.values()) * t["tCK"] + t["tCL"] + t["tBL"]


def _inside(parts: Mapping[int, list[RequestPart]], g: DramGeometry, requests: int) -> float:
    """Return how many requests a controller has inside at most: in front of its queues, and reads in them."""
    if not g.front_end or g.window is None:
        return requests
    bursts = sum(len(places) for asked in parts.values() for _, places in asked)
    return g.front_end + g.window[READ] * len(parts) * requests / bursts


def _took(asked: list[RequestPart], g: DramGeometry, most: int) -> float:
    """Return how many clocks one pseudo-channel takes: from a part of its bursts, if it has many."""
    assert g.window is not None and g.drain is not None
    total = sum(len(places) for _, places in asked)
    every = 0.0 if math.isinf(g.timing["tREFI"]) else g.timing["tREFI"] / g.timing["tCK"]
    # a stream meets the refresh of some banks and not of others: only all together are they alike
    alike = _PERIODS * every * (1.3 * g.banks if g.refresh == "per_bank" else 1)
    limit = g.queue_of * max(_MOST_BURSTS, math.ceil(alike / (g.timing["tCCD_S"] / g.timing["tCK"])))
    recurrence, kind = Recurrence(g, places=g.queue_of), READ
    loop = ClosedLoop(deque(asked), most, g.window, limit)
    loop.fill()
    while (loop.queued(READ) or loop.queued(WRITE)) and sum(loop.served) < limit:
        number = loop.turn(kind, g.drain)
        if number:
            waiting = loop.bursts[kind]
            served = set(recurrence.serve(kind, waiting, number, g.window[kind]))
            waiting[:] = [place for index, place in enumerate(waiting) if index not in served]
        kind = 1 - kind
    if total <= limit:
        return recurrence.now
    return min(recurrence.served_at) + total / _pace(recurrence.served_at, every)


def _pace(times: list[float], every: float) -> float:
    """Return the bursts of a clock in the long run: of whole periods of refresh, each with one in its middle."""
    times = sorted(times)
    whole = math.floor(times[-1] / every - 0.5) if every else 0
    if not whole:
        return len(times) / times[-1]
    first, last = every / 2, every * (whole + 0.5)
    return (bisect_right(times, last) - bisect_right(times, first)) / (last - first)
