"""What launches kept busy and moved, measured from totals that wires and units keep anyway.

Totals are read when the first PE of a launch begins and when the last one ends: between the two a run pays nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import attrs
import numpy as np
import numpy.typing as npt

from kernbench_builtin.machines.figures.columns import ColumnTable, TextColumn
from kernbench_builtin.machines.figures.readings import BusyInterval, BusyReadings, FloatArray, IntArray
from kernbench_builtin.machines.figures.resource_locations import BoolArray, ResourceLocations
from kernbench_builtin.machines.figures.roofline import RooflinePoint, roofline_point
from kernbench_core.component import ComponentBase
from kernbench_core.graph import EdgeKind
from kernbench_core.reporting import LaunchWork, PeCounter

if TYPE_CHECKING:
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.messages import Launch


@attrs.frozen(repr=False)
class LaunchUse:
    """Say how busy the busiest resource of a kind was during a launch: a fraction of its capacity, and ns.

    It serves `servers` messages at once (a wire 1), and `busy_ns` is their busy time together, which may be longer than
    the launch. `alike` is how many resources of the kind were used then, and `mean_utilisation` the mean over them.
    `nbytes` is the payload that passed a wire or channel in that time (about, where more is booked than that); units
    have none.
    """

    name: str
    kind: str
    utilisation: float
    busy_ns: float
    alike: int
    mean_utilisation: float
    servers: int = 1
    nbytes: int = 0

    def __repr__(self) -> str:
        return f"<LaunchUse {self.name} ({self.kind}) {self.utilisation:.1%}>"


@attrs.frozen(eq=False)
class Resources:
    """Name what can be busy, by number: `wires` numbers of wires first, and units behind them; number 0 is nothing.

    `codes` are the places of their kinds among `kinds`, `servers` make 100 % of each.
    """

    kinds: tuple[str, ...]
    names: Sequence[str]
    codes: npt.NDArray[np.intp]
    servers: FloatArray
    wires: int

    @classmethod
    def of(cls, hardware: Hardware, units: Sequence[ComponentBase]) -> Resources:
        """Name the wires and channels of a machine, by their own numbers, and some units."""
        wires = len(hardware.wires) + 1
        kinds: dict[str, int] = {}
        names, codes = [""] * wires, [0] * wires
        edges = hardware.graph.edges
        code_of = {kind: kinds.setdefault(f"{kind.value} wire", len(kinds)) for kind in EdgeKind}
        for source in hardware.components.values():
            for to, wire in source.out_ports.items():
                names[wire.number], codes[wire.number] = wire.name, code_of[edges[source.id, to].kind]
            for wire in source.internal_wires:
                kind = f"{source.node.kind} channel"
                names[wire.number], codes[wire.number] = wire.name, kinds.setdefault(kind, len(kinds))
        names += (unit.id for unit in units)
        codes += (kinds.setdefault(unit.node.kind, len(kinds)) for unit in units)
        servers = np.ones(len(names))
        servers[wires:] = [unit.servers for unit in units]
        return cls(tuple(kinds), names, np.array(codes), servers, wires)

    def busiest(self, busy: FloatArray, nbytes: IntArray, span: float) -> tuple[LaunchUse, ...]:
        """Return the busiest of each kind, the highest first; each was busy for so many of `span` ns."""
        used = np.flatnonzero(busy > 0.0)
        if not len(used):
            return ()
        at = used[np.argsort(self.codes[used], kind="stable")]
        share = busy[at] / (span * self.servers[at])
        starts = np.flatnonzero(np.diff(self.codes[at], prepend=-1))
        numbers = np.diff(starts, append=len(at))
        together, most = np.add.reduceat(share, starts), np.maximum.reduceat(share, starts)
        found = []
        for start, number, total, top in zip(starts, numbers, together, most, strict=True):
            alike = at[start : start + number]
            first = min(alike[share[start : start + number] == top].tolist(), key=self.names.__getitem__)
            name, kind = self.names[first], self.kinds[self.codes[first]]
            mean, servers = float(total / number), int(self.servers[first])
            use = LaunchUse(name, kind, float(top), float(busy[first]), int(number), mean, servers, int(nbytes[first]))
            found.append(use)
        return tuple(sorted(found, key=lambda use: (-use.utilisation, use.name)))


def busiest_of(
    resources: Resources, intervals: Sequence[BusyInterval], own: BoolArray | None = None
) -> tuple[LaunchUse, ...]:
    """Return the busiest resource of each kind over all intervals together, the highest first; with `own`, of these."""
    span = sum(each.span for each in intervals)
    return resources.busiest(*_added(resources, intervals, own), span) if span else ()


def links_of(resources: Resources, intervals: Sequence[BusyInterval], own: BoolArray) -> ColumnTable:
    """Return the own wires and channels that were busy, or took a message, in the intervals, by their numbers."""
    span = sum(each.span for each in intervals)
    busy, nbytes = (column[: resources.wires] for column in _added(resources, intervals, own))
    at = np.flatnonzero((busy > 0.0) | (nbytes > 0))
    return ColumnTable(
        len(at),
        {
            "name": TextColumn(np.arange(len(at)), [resources.names[each] for each in at.tolist()]),
            "kind": TextColumn(resources.codes[at], resources.kinds),
            "bytes": nbytes[at],
            "busy_ns": busy[at],
            "utilisation": busy[at] / span if span else busy[at],
        },
    )


def _added(
    resources: Resources, intervals: Sequence[BusyInterval], own: BoolArray | None
) -> tuple[FloatArray, IntArray]:
    """Return for how long each resource was busy in all intervals together, and the bytes that it took.

    With `own`, nothing of the others.
    """
    busy, nbytes = np.zeros(len(resources.names)), np.zeros(len(resources.names), np.int64)
    for each in intervals:
        busy[each.numbers] += each.busy
        busy[each.units + resources.wires] += each.units_busy
        nbytes[each.numbers] += each.nbytes
    if own is not None:
        busy[~own], nbytes[~own] = 0.0, 0
    return busy, nbytes


class LaunchMeter:
    """Measure the launches of one run; the kernel runner says when each PE begins and ends its part.

    What a PE computes, and what it moves to and from memories, counts for the launch that it runs; how busy resources
    are is what those of its PEs and SIPs were during the launch, whoever used them.
    """

    def __init__(self) -> None:
        #: The launches that run, and those that are over, with the numbers of their intervals: the first, and the end.
        self._running: dict[Launch, int] = {}
        self._over: dict[Launch, tuple[int, int]] = {}
        self._work: dict[Launch, LaunchWork] = {}
        #: Of each PE, by its index.
        self._counters: list[PeCounter] = []

    def attach(self, hardware: Hardware) -> None:
        """Measure on this machine; called once, when every component exists and nothing has happened yet."""
        self._hardware = hardware
        self._units = [each for each in hardware.components.values() if each.keeps_busy and each.node.kind != "pe_cpu"]
        self._readings = BusyReadings(hardware, self._units)

    @cached_property
    def resources(self) -> Resources:
        """What can be busy."""
        return Resources.of(self._hardware, self._units)

    @cached_property
    def _locations(self) -> ResourceLocations:
        return ResourceLocations.of(self._hardware, self._units)

    @cached_property
    def sip_of(self) -> tuple[int, ...]:
        """The SIP of each PE, by its index."""
        return tuple(site.sip for site in self._hardware.layout.pes)

    def name_of(self, pe: int) -> str:
        """Return the name of a PE."""
        return self._hardware.layout.pes[pe].prefix

    def is_alone(self, launch: Launch) -> bool:
        """Whether no launch began after this one, and before it was over."""
        began, over = min(launch.started_ns.values()), max(launch.ended_ns.values())
        others = (min(each.started_ns.values(), default=began) for each in (*self._running, *self._over))
        return not any(began < other < over for other in others)

    def own(self, launch: Launch) -> BoolArray:
        """Say of each resource whether it is a part of the PEs or the SIPs that a launch ran on, or touches these."""
        return self._locations.of_launch(launch.programs)

    def _index(self) -> None:
        """Have whatever of a PE asks memories outside of it, or computes, count for what its counter says."""
        counters = {pe.prefix: PeCounter() for pe in self._hardware.layout.pes}
        for each in self._hardware.components.values():
            prefix = each.id.rpartition(".")[0]
            counter = counters.get(prefix)
            if counter is None:
                continue
            if any(not to.startswith(f"{prefix}.") for to in each.out_ports):
                self._hardware.counters[each.id] = counter
            if type(each).flops is not ComponentBase.flops:
                each.rates.counter = counter
        self._counters = [counters[pe.prefix] for pe in self._hardware.layout.pes]

    # While the run goes on ----------------------------------------------------------------------------

    def begun(self, launch: Launch, pe: int) -> None:
        """Count what the PE of this index does for this launch from now on."""
        work = self._work.get(launch)
        if work is None:
            if not self._counters:
                self._index()
            work = self._work[launch] = LaunchWork()
            self._readings.read(kept=bool(self._running), idle=not self._running)
            self._running[launch] = self._readings.count
        self._counters[pe].work = work

    def ended(self, launch: Launch, pe: int) -> None:
        """Count nothing of this PE any more; with the last one, see how busy everything was."""
        self._counters[pe].work = None
        if len(launch.ended_ns) == len(launch.programs):
            self._readings.read(kept=True, idle=len(self._running) == 1)
            self._over[launch] = self._running.pop(launch), self._readings.count

    # Results ------------------------------------------------------------------------------------------

    def intervals(self, launch: Launch | None = None) -> Sequence[BusyInterval]:
        """Return what was busy while a launch ran, or else while any did; nothing of a launch that is not over."""
        first, end = (0, None) if launch is None else self._over.get(launch, (0, 0))
        return self._readings.intervals[first:end]

    def waited(self) -> FloatArray:
        """Return how long messages queued at each wire and channel while any launch ran, in ns, by its number."""
        found = np.zeros(self.resources.wires)
        for each in self.intervals():
            found[each.numbers] += each.waited
        return found

    def busiest(self) -> tuple[LaunchUse, ...]:
        """Return the busiest resource of each kind while any launch ran, the highest first."""
        return busiest_of(self.resources, self.intervals())

    def work(self) -> Sequence[LaunchWork]:
        """Return what each launch computed and moved."""
        return [*self._work.values()]

    def point(self, launch: Launch) -> RooflinePoint | None:
        """Return the point of a launch under the roof, None when no PE of it has both started and ended."""
        work = self._work.get(launch)
        if not launch.ended_ns or work is None:
            return None
        duration = max(launch.ended_ns.values()) - min(launch.started_ns.values())
        return roofline_point(work, duration, self._hardware)

