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
    """Keep what happened in `span` ns: for how long wires of some `numbers` were busy (ns), and the bytes they moved.

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
        #: What was worked out last: when, of each wire by its number what counted until then, of units their totals.
        self._time = 0.0
        self._busy, self._moved, self._waited = np.zeros(0), np.zeros(0, np.int64), np.zeros(0)
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
            for column in (self._busy, self._moved, self._waited):
                column.resize(wires, refcheck=False)
        for reading in pending:
            numbers, row = reading.numbers, reading.units - self._unit_busy
            counted, had, waited = self._busy[numbers], self._moved[numbers], self._waited[numbers]
            busy, moved = _passed(reading, counted, had)
            if reading.kept:
                used = np.flatnonzero(row)
                grown = (busy - counted, moved - had, reading.waited - waited)
                self._intervals.append(BusyInterval(reading.time - self._time, numbers, *grown, used, row[used]))
            self._busy[numbers], self._moved[numbers], self._waited[numbers] = busy, moved, reading.waited
            self._time, self._unit_busy = reading.time, reading.units


def _passed(reading: _Reading, counted: FloatArray, had: IntArray) -> tuple[FloatArray, IntArray]:
    """Return for how long its wires were busy until a reading, and the bytes that passed, where so much had before.

    Where a wire is booked beyond the time, it counts as busy from there until it is free, as in `Wire.busy_by`: what is
    left is at most what was. Of the bytes that are new, as large a part has passed as of the busy time that is new.
    """
    ahead = np.maximum(0.0, reading.taken - reading.time)
    busy = np.maximum(counted, reading.busy - ahead)
    new = (reading.carried - had).astype(np.float64)
    np.divide(new * (busy - counted), reading.busy - counted, out=new, where=busy < reading.busy)
    return busy, had + new.astype(np.int64)
