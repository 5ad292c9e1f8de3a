"""Times of the sizes of one table on one machine: simulated up to where links are full, and continued from there."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence

from attrs import frozen

from kernbench_ccl.measure.table import Measured
from kernbench_core.calibration import EVEN, SimulatedRow, grows_evenly

TableRow = tuple[int, bool]
"""A size in bytes, and whether it runs in place."""
SimulatedSizes = Callable[[Collection[int], bool], Mapping[TableRow, Measured]]
"""Simulate sizes out of place, and in place too if asked."""


@frozen
class TableTimes:
    """What was simulated, up to `most` bytes; `settled` says whether times grow evenly from there on."""

    known: Mapping[TableRow, Measured]
    most: int
    settled: bool = True

    @classmethod
    def simulated(cls, run: SimulatedSizes, asked: Collection[TableRow], begin: int, most: int) -> TableTimes:
        """Simulate all sizes up to `begin`, and then up to its doubles until times grow evenly, at most to `most`."""
        at, done, top = min(begin, most), 0, max(nbytes for nbytes, _ in asked)
        both = any(in_place for _, in_place in asked)
        known: dict[TableRow, Measured] = {}
        while True:
            larger = {at // 2, at} if top > at else set()
            sizes = {nbytes for nbytes, _ in asked if done < nbytes <= at} | {one for one in larger if one > done}
            known.update(run(sorted(sizes), both))
            if top <= at:
                return cls(known, at)
            settled = grows_evenly(*_slopes(known, at, False))
            if settled or 2 * at > most:
                return cls(known, at, settled)
            done, at = at, 2 * at

    def of(self, nbytes: int, in_place: bool) -> SimulatedRow:
        """Return the time of a size, continued as it grew, and as what the busiest resource takes if that is alike."""
        if (nbytes, in_place) in self.known:
            return SimulatedRow(self.known[nbytes, in_place].time_ns)
        slope, load, _ = _slopes(self.known, self.most, in_place)
        slope = (slope + load) / 2 if abs(slope - load) <= EVEN * load else slope
        start = self.known[self.most, in_place].time_ns
        return SimulatedRow(start + (nbytes - self.most) * slope, True, self.settled)


def _slopes(known: Mapping[TableRow, Measured], at: int, in_place: bool) -> tuple[float, float, float]:
    """Return the ns a byte by which time grows to a size, that the busiest resource takes, and that all bytes took."""
    half, whole = known[at // 2, in_place], known[at, in_place]
    busy = 0.0 if whole.binds is None else whole.binds.utilisation * whole.time_ns
    return (whole.time_ns - half.time_ns) / (at - at // 2), busy / at, whole.time_ns / at


_ALIKE = 0.1
"""A part by which a slope may be below the load of the busiest resource where links wait for no latency."""


@frozen
class EndTimes:
    """Times of one table, of which the ends of each algorithm's sizes were simulated: lines are between and beyond.

    Good to a few %, for a search; `ends` has the sizes of each algorithm that were simulated, in bytes. Times in place
    are as far beside their lines as those of `exact` out of place, where that is given.
    """

    known: Mapping[TableRow, Measured]
    ends: Sequence[Sequence[int]]
    exact: TableTimes | None = None

    @classmethod
    def simulated(
        cls, run: SimulatedSizes, asked: Collection[TableRow], most: int, algorithm: Callable[[int], str],
        exact: TableTimes | None = None,
    ) -> EndTimes:  # fmt: skip
        """Simulate the smallest and largest size of each row of sizes that one algorithm serves, up to `most`."""
        sizes = sorted({min(nbytes, most) for nbytes, _ in asked})
        runs = [list(own) for _, own in itertools.groupby(sizes, algorithm)]
        ends = [sorted({own[0], own[-1]}) for own in runs]
        others = [] if exact is None else [one for one in sizes if (one, False) not in exact.known]
        wanted = sorted({*others, *(one for own in ends for one in own)})
        return cls(run(wanted, any(in_place for _, in_place in asked)), ends, exact)

    def of(self, nbytes: int, in_place: bool) -> SimulatedRow:
        """Return the time of a size: simulated, on the line through both ends, or as links take it from the last."""
        if (nbytes, in_place) in self.known:
            return SimulatedRow(self.known[nbytes, in_place].time_ns)
        line = self._line(nbytes, in_place)
        if self.exact is None:
            return SimulatedRow(line, True)
        beside = self.exact.of(nbytes, False)
        return SimulatedRow(line * beside.ns / self._line(nbytes, False), True, beside.settled)

    def _line(self, nbytes: int, in_place: bool) -> float:
        own = next((one for one in self.ends if nbytes <= one[-1]), self.ends[-1])
        first, last = self.known[own[0], in_place], self.known[own[-1], in_place]
        load = 0.0 if last.binds is None else last.binds.utilisation * last.time_ns / own[-1]
        slope = load if len(own) == 1 else (last.time_ns - first.time_ns) / (own[-1] - own[0])
        if nbytes > own[-1]:
            slope = load if slope >= (1 - _ALIKE) * load else slope
            return max(last.time_ns + (nbytes - own[-1]) * slope, nbytes * load)
        return first.time_ns + (nbytes - own[0]) * slope
