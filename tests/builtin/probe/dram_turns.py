"""Whose turn it is in the queues of one pseudo-channel, or of several that share them: derived in `dram_expected`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import attrs

from kernbench_builtin.components.dram import DramGeometry
from kernbench_builtin.probe.dram_workload import READ, WRITE, RowPlace
from tests.builtin.probe.dram_recurrence import CommandBus, Recurrence

#: The clock before the first one, at which no command comes.
_UNKNOWN = -1.0


@attrs.define(eq=False)
class AskedBursts:
    """One request: of which kind, its bursts by queue, how many are not in their queues and how many not left those.

    `last` is the clock of its last column command so far.
    """

    kind: int
    places: dict[int, list[RowPlace]]
    entering: int = attrs.field(init=False)
    left: int = attrs.field(init=False)
    last: float = 0.0

    def __attrs_post_init__(self) -> None:
        self.entering = self.left = sum([len(places) for places in self.places.values()])


@attrs.define(eq=False)
class WaitingBurst:
    """One burst: where it goes, of which request, and the clocks at which it leaves its queue and of its column command
    as far as they are known.
    """

    place: RowPlace
    request: AskedBursts
    leaves: float = _UNKNOWN
    column: float = _UNKNOWN


class BurstQueues:
    """Hold the bursts of each kind, in order of age: those in front, and those that are seen.

    Clocks never fall from call to call.
    """

    def __init__(self, g: DramGeometry, bus: CommandBus) -> None:
        assert g.window is not None and g.drain is not None
        self._window, self._drain = g.window, g.drain
        self._recurrence = Recurrence(g, bus, g.queue_of)
        self._front: tuple[deque[WaitingBurst], deque[WaitingBurst]] = (deque(), deque())
        #: The bursts that are seen and not served, in order of age.
        self._seen: tuple[dict[WaitingBurst, None], dict[WaitingBurst, None]] = ({}, {})
        self._fresh: list[WaitingBurst] = []
        self._done: list[tuple[int, float]] = []
        self._kind = READ
        #: When each burst that was served had its column command.
        self.served_at: list[float] = []

    def come(self, request: AskedBursts, places: list[RowPlace]) -> None:
        """Take bursts of a request in front of their queue."""
        self._front[request.kind].extend(WaitingBurst(place, request) for place in places)

    def leave(self, burst: WaitingBurst) -> None:
        """Take out a burst at the clock after its activation or column command, which is now."""
        del self._seen[self._kind][burst]
        self._done.append((burst.place[0], burst.column))
        self.served_at.append(burst.column)
        burst.request.last = max(burst.request.last, burst.column)
        burst.leaves = burst.column = _UNKNOWN

    def is_left(self, burst: WaitingBurst, at: float) -> bool:
        """Say whether a burst leaves at the clock before `at`, as was expected when it was seen."""
        return burst.leaves + 1 == at

    def enter(self) -> Iterator[AskedBursts]:
        """Let bursts in where there is room; yield the request of each."""
        for kind, front in enumerate(self._front):
            seen, window = self._seen[kind], self._window[kind]
            while front and len(seen) < window:
                burst = front.popleft()
                seen[burst] = None
                if kind == self._kind:
                    self._fresh.append(burst)
                yield burst.request

    def settle(self, now: float) -> list[WaitingBurst]:
        """Change the turn if it is time to, and find the column commands of what is newly seen; return those bursts."""
        if self._turns():
            for burst in self._seen[self._kind]:
                burst.leaves = burst.column = _UNKNOWN
            self._recurrence.end(self._kind, now - 1, self._done)
            self._recurrence.begin()
            self._kind = 1 - self._kind
            self._done = []
            self._fresh = list(self._seen[self._kind])
        fresh, self._fresh = self._fresh, []
        for burst in fresh:
            burst.leaves, burst.column = self._recurrence.column(self._kind, burst.place, now)
        return fresh

    def _turns(self) -> bool:
        """Say whether it is the other kind's turn."""
        reads, writes = len(self._seen[READ]), len(self._seen[WRITE])
        if self._kind == READ:
            return writes > 0 and (writes >= self._drain[0] or not reads)
        return reads > 0 and writes <= self._drain[1]
