"""When the nodes of a mesh make packets: in each cycle with the same probability, or in bursts with pauses between."""

from __future__ import annotations

from heapq import heapify, heapreplace
from typing import Protocol

import numpy as np

from kernbench_builtin.probe.traffic_patterns import PlaceArray, Random
from kernbench_core.errors import UsageError


class Source(Protocol):
    """Who makes packets."""

    def make(self, start: int, cycles: int) -> tuple[PlaceArray, PlaceArray]:
        """Return cycle and place of the packets of `cycles` from `start` on, where the last call ended; in order."""
        ...


class Bernoulli:
    """Make a packet of `flits` in each cycle and place with probability load / flits, whatever happened before."""

    def __init__(self, random: Random, places: int, load: float, flits: int) -> None:
        self._random = random
        self._places = places
        self._rate = load / flits

    def make(self, start: int, cycles: int) -> tuple[PlaceArray, PlaceArray]:
        """Return cycle and place of the packets of the next `cycles`."""
        when, places = np.nonzero(self._random.random((cycles, self._places)) < self._rate)
        return when + start, places


class Bursts:
    """Make packets one right behind the other in bursts of `burst` on average, and pause between them.

    The number of packets of a burst and the cycles of a pause, at least one each, are geometric, and so without memory;
    the mean of the pauses is what `load` (flits/node/cycle) leaves. UsageError when it leaves less than a cycle.
    """

    def __init__(self, random: Random, places: int, load: float, flits: int, burst: float) -> None:
        check_bursts(load, flits, burst)
        self._random = random
        self._flits = flits
        self._burst = burst
        self._pause = max(1.0, burst * flits * (1.0 - load) / load)
        self._left = [0] * places
        self._next: list[tuple[int, int]] = []
        for place in range(places):
            if random.random() < load:  # in the middle of a burst: what is left is as long as a whole one
                self._left[place] = self._length(1.0 / burst)
                self._next.append((int(random.integers(flits)), place))
            else:
                self._left[place] = self._length(1.0 / burst)
                self._next.append((self._length(1.0 / self._pause), place))
        heapify(self._next)

    def make(self, start: int, cycles: int) -> tuple[PlaceArray, PlaceArray]:
        """Return cycle and place of the packets of the next `cycles`."""
        when, places = [], []
        queue, left = self._next, self._left
        while queue[0][0] < start + cycles:
            cycle, place = queue[0]
            when.append(cycle)
            places.append(place)
            left[place] -= 1
            following = cycle + self._flits
            if not left[place]:
                left[place] = self._length(1.0 / self._burst)
                following += self._length(1.0 / self._pause)
            heapreplace(queue, (following, place))
        return np.array(when, dtype=np.int64), np.array(places, dtype=np.int64)

    def _length(self, chance: float) -> int:
        return int(self._random.geometric(chance))


def most_load(flits: int, burst: float) -> float:
    """Return the highest load that bursts of so many packets of so many flits can have, with pauses of one cycle."""
    return burst * flits / (burst * flits + 1.0)


def check_bursts(load: float, flits: int, burst: float) -> None:
    """Raise UsageError where bursts cannot have a load."""
    most = most_load(flits, burst)
    if load > most * (1 + 1e-9):
        raise UsageError(
            f"--load must be at most {int(most * 1e4) / 1e4:g} with bursts of {burst:g} packets of "
            f"{flits} flit{'s' if flits > 1 else ''}, as a source pauses for a cycle at least, not {load:g}."
        )


def dispersion(load: float, flits: int, burst: float | None) -> float:
    """Return how much packets made in a long time vary: the variance of their number over its mean, 1 if at random.

    Of bursts it is that of a renewal process with rewards: each source makes a burst, then pauses.
    """
    if burst is None:
        return 1.0 - load / flits
    return max(0.0, (1.0 - load) ** 2 * (2.0 * burst - 1.0) - load * (1.0 - load) / flits)


def make_source(random: Random, places: int, load: float, flits: int, burst: float | None) -> Source:
    """Return who makes packets: in bursts of a mean length where one is given, in packets."""
    return Bernoulli(random, places, load, flits) if burst is None else Bursts(random, places, load, flits, burst)
