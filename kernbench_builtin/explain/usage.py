"""How busy each kind of resource was over the time of a run, in a bounded number of bins."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING

import attrs

from kernbench_core.host.timing import wire_kind

if TYPE_CHECKING:
    from kernbench_core.component import ComponentBase
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.wire import Wire

#: Bins that a run is shown in.
BINS = 40
#: Samples kept: at least two for each bin.
_SAMPLES = 4 * BINS
_FIRST_NS = 16.0


@attrs.frozen
class Usage:
    """Say how busy the used resources of one kind were in each of `BINS` equal bins of the run, from 0 to 1.

    `resources` counts wires, channels and units; all servers of those units make up 1.
    """

    kind: str
    resources: int
    utilisation: tuple[float, ...]


@attrs.frozen
class Filling:
    """Say how long the units of one kind that computed were at work, together, and how much only started and drained.

    `filling_ns` is the part of `busy_ns` in which a unit started up, filled or drained while no operands entered it.
    """

    kind: str
    units: int
    busy_ns: float
    filling_ns: float

    @property
    def share(self) -> float:
        """Filling over busy."""
        return self.filling_ns / self.busy_ns


def filling_of(hardware: Hardware, total: float) -> tuple[Filling, ...]:
    """Return what each kind of unit that tells of it lost to filling until `total` ns, the most first."""
    kinds: dict[str, list[tuple[float, float]]] = {}
    for component in hardware.components.values():
        if component.filling_ns > 0:
            kinds.setdefault(component.node.kind, []).append((component.busy_by(total), component.filling_ns))
    found = [Filling(kind, len(each), *map(sum, zip(*each, strict=True))) for kind, each in kinds.items()]
    return tuple(sorted(found, key=lambda filling: (-filling.filling_ns, filling.kind)))


class UsageSampler:
    """Note, at times that a run reaches, how long every resource has been busy.

    The distance of samples doubles whenever there are too many. `sample(time)` fits
    `RecordingEnvironment.sample_with`.
    """

    def __init__(self, hardware: Hardware) -> None:
        self._wires: dict[str, list[Wire]] = {}
        self._units: dict[str, list[ComponentBase]] = {}
        for wire in hardware.wires:
            self._wires.setdefault(wire_kind(hardware, wire), []).append(wire)
        for component in hardware.components.values():
            if component.keeps_busy and component.node.kind != "pe_cpu":
                self._units.setdefault(component.node.kind, []).append(component)
        self._interval = _FIRST_NS
        self._times: list[float] = [0.0]
        self._samples: list[dict[str, float]] = [{}]

    @property
    def first(self) -> float:
        """When the first sample is due, in ns."""
        return self._interval

    def sample(self, time: float) -> float:
        """Note how busy everything was until `time` ns; return when the next sample is due."""
        self._times.append(time)
        self._samples.append(self._busy(time))
        if len(self._times) > _SAMPLES:
            del self._times[1::2], self._samples[1::2]
            self._interval *= 2
        return time + self._interval

    def usage(self, total: float) -> tuple[Usage, ...]:
        """Return the use of each kind of resource from 0 to `total` ns, the busiest kind first."""
        if not total:
            return ()
        times, samples = [*self._times, total], [*self._samples, self._busy(total)]
        width = total / BINS
        found = []
        for kind, (resources, capacity) in sorted(self._used().items()):
            busy = _settled([sample.get(kind, 0.0) for sample in samples])
            reached = [_at(times, busy, width * edge) for edge in range(BINS + 1)]
            shares = (max(0.0, b - a) / (width * capacity) for a, b in pairwise(reached))
            found.append(Usage(kind, resources, tuple(min(1.0, round(share, 6)) for share in shares)))
        return tuple(sorted(found, key=lambda use: (-sum(use.utilisation), use.kind)))

    def _busy(self, time: float) -> dict[str, float]:
        """Return how long the resources of each kind have been busy until `time`, together, in ns."""
        busy: dict[str, float] = {}
        for kind, wires in self._wires.items():
            busy[kind] = sum(wire.busy_by(time) for wire in wires if wire.busy_ns)
        for kind, units in self._units.items():
            busy[kind] = sum(unit.busy_by(time) for unit in units)
        return busy

    def _used(self) -> dict[str, tuple[int, int]]:
        """Return how many resources of each kind were used, and how many wires, channels and servers they are."""
        found = {kind: [1 for wire in wires if wire.busy_ns] for kind, wires in self._wires.items()}
        for kind, units in self._units.items():
            found[kind] = [unit.servers for unit in units if unit.busy_ns or unit.serving]
        return {kind: (len(servers), sum(servers)) for kind, servers in found.items() if servers}


def _settled(busy: list[float]) -> list[float]:
    """Take back what a component counted as busy and later said was not: from the end, nothing exceeds what follows."""
    found = list(busy)
    for index in range(len(found) - 2, -1, -1):
        found[index] = min(found[index], found[index + 1])
    return found


def _at(times: list[float], values: list[float], time: float) -> float:
    """Interpolate: the value at `time` on the line through the samples."""
    index = bisect_left(times, time)
    if index == 0:
        return values[0]
    if index == len(times):
        return values[-1]
    before, after = times[index - 1], times[index]
    if after <= before:
        return values[index]
    share = (time - before) / (after - before)
    return values[index - 1] + share * (values[index] - values[index - 1])
