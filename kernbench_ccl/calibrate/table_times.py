"""Times of the sizes of one table on one machine: simulated up to where links are full, and continued from there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

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
