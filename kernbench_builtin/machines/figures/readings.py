"""What was busy and what was moved between two moments of a run, from totals that wires and units keep anyway.

A reading takes the totals of the wires that were used since the last one, and of all units, and does nothing else: what
grew in between is worked out for many readings at once, when somebody asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from kernbench_core.component import ComponentBase
    from kernbench_core.engine.hardware import Hardware

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
_NUMBER, _BUSY, _TAKEN, _CARRIED, _WAITED = map(
    attrgetter, ("number", "busy_ns", "available_at", "bytes_carried", "waited_ns")
)
#: Rows of readings after which they are worked out, whoever asks: they take more memory than what comes of them.
_MOST = 1 << 17


@attrs.frozen(eq=False)
class BusyInterval:
    """Keep what happened in `span` ns: for how long wires of some `numbers` were busy (ns), and the bytes they took.

    Messages `waited` for them, ns together. `units` are those that were busy, by their place among all, for
    `units_busy` ns.
    """

    span: float
    numbers: IntArray
    busy: FloatArray
    nbytes: IntArray
    waited: FloatArray
    units: IntArray
    units_busy: FloatArray


@attrs.frozen(eq=False)
class _Reading:
    """Keep what was read at a time: of wires by number, of each unit; `kept` says that the time before it counts."""

    time: float
    kept: bool
    numbers: IntArray
    busy: FloatArray
    taken: FloatArray
    carried: IntArray
    waited: FloatArray
    units: FloatArray


class BusyReadings:
    """Read the totals of one machine, and tell what grew from one reading to the next."""

    def __init__(self, hardware: Hardware, units: Sequence[ComponentBase]) -> None:
        self._hardware = hardware
        self._units = units
        self._pending: list[_Reading] = []
        self._rows = 0
        self._intervals: list[BusyInterval] = []
        #: How many intervals there are, worked out or not.
        self.count = 0
        #: What was worked out last: when, of each wire by its number its totals, of each unit its.
        self._time = 0.0
        self._busy, self._taken, self._carried = np.zeros(0), np.zeros(0), np.zeros(0, np.int64)
        self._waited = np.zeros(0)
        self._unit_busy = np.zeros(len(units))

    def read(self, *, kept: bool, idle: bool) -> None:
        """Read now; the time since the last reading is an interval where it is `kept`.

        What units have under way counts, but for those of an `idle` machine.
        """
        now, used = self._hardware.env.now, self._hardware.used_wires
        size = len(used)
        numbers = np.fromiter(map(_NUMBER, used), np.int64, size)
        busy = np.fromiter(map(_BUSY, used), np.float64, size)
        taken = np.fromiter(map(_TAKEN, used), np.float64, size)
        carried = np.fromiter(map(_CARRIED, used), np.int64, size)
        waited = np.fromiter(map(_WAITED, used), np.float64, size)
        found = map(_BUSY, self._units) if idle else (unit.busy_by(now) for unit in self._units)
        units = np.fromiter(found, np.float64, len(self._units))
        self._pending.append(_Reading(now, kept, numbers, busy, taken, carried, waited, units))
        self.count += kept
        ahead = [used[at] for at in np.flatnonzero(taken > now).tolist()]
        for wire in used:
            wire.fresh = True
        used.clear()
        for wire in ahead:
            wire.note_use()  # what it is booked for already belongs to the next interval
        self._rows += size + len(units)
        if self._rows > _MOST:
            self._settle()

    @property
    def intervals(self) -> Sequence[BusyInterval]:
        """The times that were kept, in their order."""
        if self._pending:
            self._settle()
        return self._intervals

    def _settle(self) -> None:
        """Work out what grew before each reading that is pending: of a wire, since the last one that it is in."""
        pending, self._pending, self._rows = self._pending, [], 0
        wires = len(self._hardware.wires) + 1
        if len(self._busy) < wires:
            for column in (self._busy, self._taken, self._carried, self._waited):
                column.resize(wires, refcheck=False)
        sizes = [len(each.numbers) for each in pending]
        columns = ("numbers", "busy", "taken", "carried", "waited")
        numbers, busy, taken, carried, waited = (
            np.concatenate([getattr(each, name) for each in pending]) for name in columns
        )
        until = np.array([each.time for each in pending])
        since = np.concatenate(([self._time], until[:-1]))
        # rows of one wire together, as they came; few bits are sorted ten times faster
        order = np.argsort(numbers.astype(np.min_scalar_type(wires)), kind="stable")
        first = np.diff(numbers[order], prepend=0) != 0
        before = [each[numbers] for each in (self._busy, self._taken, self._carried, self._waited)]
        for was, now in zip(before, (busy, taken, carried, waited), strict=True):
            was[order[1:]] = np.where(first[1:], was[order[1:]], now[order[:-1]])
        end, begin = np.repeat(until, sizes), np.repeat(since, sizes)
        grown = _busy_by(busy, taken, end) - _busy_by(before[0], before[1], begin)
        moved, queued = carried - before[2], waited - before[3]
        units = np.diff(np.stack([self._unit_busy, *(each.units for each in pending)]), axis=0)
        at = 0
        for reading, size, row, start in zip(pending, sizes, units, since.tolist(), strict=True):
            if reading.kept:
                rows, used = slice(at, at + size), np.flatnonzero(row)
                span, busy_units = reading.time - start, row[used]
                self._intervals.append(
                    BusyInterval(span, reading.numbers, grown[rows], moved[rows], queued[rows], used, busy_units)
                )
            at += size
        self._busy[numbers], self._taken[numbers], self._carried[numbers] = busy, taken, carried
        self._waited[numbers] = waited
        self._time, self._unit_busy = pending[-1].time, pending[-1].units


def _busy_by(busy: FloatArray, taken: FloatArray, time: FloatArray) -> FloatArray:
    """Return for how long wires were busy until a time, as `Wire.busy_by` does."""
    found: FloatArray = np.maximum(0.0, busy - np.maximum(0.0, taken - time))
    return found
