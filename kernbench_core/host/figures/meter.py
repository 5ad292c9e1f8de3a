"""What launches kept busy and moved, measured from totals that wires and units keep anyway.

Totals are read when the first PE of a launch begins and when the last one ends, of the wires that were used since the
last time (they note that themselves) and of all units: between the two a run pays nothing.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import cached_property
from itertools import compress
from operator import ne, sub
from typing import TYPE_CHECKING, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from kernbench_core.component import ComponentBase
from kernbench_core.graph import EdgeKind
from kernbench_core.host.figures.roofline import LaunchWork, RooflinePoint, roofline_point
from kernbench_core.reporting import UnitWork

if TYPE_CHECKING:
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.messages import Launch

_Floats: TypeAlias = npt.NDArray[np.float64]


@attrs.frozen(repr=False)
class LaunchUse:
    """Say how busy the busiest resource of a kind was during a launch: a fraction of its capacity, and ns.

    It serves `servers` messages at once (a wire 1), and `busy_ns` is their busy time together, which may be longer than
    the launch. `alike` is how many resources of the kind were used then, and `mean_utilisation` the mean over them.
    """

    name: str
    kind: str
    utilisation: float
    busy_ns: float
    alike: int
    mean_utilisation: float
    servers: int = 1

    def __repr__(self) -> str:
        return f"<LaunchUse {self.name} ({self.kind}) {self.utilisation:.1%}>"


@attrs.frozen(eq=False)
class Resources:
    """Name what can be busy, by number: wires first, and units behind them; number 0 is nothing.

    `codes` are the places of their kinds among `kinds`, `servers` make 100 % of each.
    """

    kinds: tuple[str, ...]
    names: Sequence[str]
    codes: npt.NDArray[np.intp]
    servers: _Floats

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
        return cls(tuple(kinds), names, np.array(codes), servers)

    def busiest(self, busy: _Floats, span: float) -> tuple[LaunchUse, ...]:
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
            found.append(LaunchUse(name, kind, float(top), float(busy[first]), int(number), mean, servers))
        return tuple(sorted(found, key=lambda use: (-use.utilisation, use.name)))


@attrs.frozen(eq=False)
class BusyInterval:
    """Keep for how long, in ns, resources of some `numbers` were busy in a time of `span` ns."""

    span: float
    numbers: array[int]
    busy: array[float]


def busiest_of(resources: Resources, intervals: Sequence[BusyInterval]) -> tuple[LaunchUse, ...]:
    """Return the busiest resource of each kind over all intervals together, the highest first."""
    span = sum(each.span for each in intervals)
    if not span:
        return ()
    busy = np.zeros(len(resources.names))
    for each in intervals:
        if each.numbers:
            busy[np.frombuffer(each.numbers, np.int64)] += np.frombuffer(each.busy)
    return resources.busiest(busy, span)


class LaunchMeter:
    """Measure the launches of one run; the kernel runner says when each PE begins and ends its part.

    What a PE computes, and what it moves to and from memories, counts for the launch that it runs; how busy resources
    are is what they were during the launch, whoever used them.
    """

    def __init__(self) -> None:
        #: What was busy from each beginning or end of a launch to the next one, as long as any launch ran.
        self._intervals: list[BusyInterval] = []
        #: The launches that run, and those that are over, with the numbers of their intervals: the first, and the end.
        self._running: dict[Launch, int] = {}
        self._over: dict[Launch, tuple[int, int]] = {}
        self._work: dict[Launch, LaunchWork] = {}
        self._nobody = UnitWork()
        self._read_at = 0.0
        self._pes: list[tuple[list[str], list[ComponentBase]]] = []

    def attach(self, hardware: Hardware) -> None:
        """Measure on this machine; called once, when every component exists and nothing has happened yet."""
        self._hardware = hardware
        self._units = [each for each in hardware.components.values() if each.keeps_busy and each.node.kind != "pe_cpu"]
        self._unit_busy = [0.0] * len(self._units)

    @cached_property
    def resources(self) -> Resources:
        """What can be busy."""
        return Resources.of(self._hardware, self._units)

    def _index(self) -> None:
        """Find what of each PE asks memories outside of it, and what of it computes."""
        prefixes = {pe.prefix for pe in self._hardware.layout.pes}
        asking: dict[str, list[str]] = {}
        computing: dict[str, list[ComponentBase]] = {}
        for each in self._hardware.components.values():
            prefix = each.id.rpartition(".")[0]
            if prefix not in prefixes:
                continue
            if any(not to.startswith(f"{prefix}.") for to in each.out_ports):
                asking.setdefault(prefix, []).append(each.id)
            if type(each).flops is not ComponentBase.flops:
                computing.setdefault(prefix, []).append(each)
        self._pes = [(asking.get(pe.prefix, []), computing.get(pe.prefix, [])) for pe in self._hardware.layout.pes]

    # While the run goes on ----------------------------------------------------------------------------

    def begun(self, launch: Launch, pe: int) -> None:
        """Count what the PE of this index does for this launch from now on."""
        work = self._work.get(launch)
        if work is None:
            if not self._pes:
                self._index()
            work = self._work[launch] = LaunchWork()
            self._read()
            self._running[launch] = len(self._intervals)
        asking, computing = self._pes[pe]
        for node in asking:
            self._hardware.counted_for[node] = work.memories
        for unit in computing:
            unit.rates.work = work.units.setdefault(unit.id, UnitWork())

    def ended(self, launch: Launch, pe: int) -> None:
        """Count nothing of this PE any more; with the last one, see how busy everything was."""
        asking, computing = self._pes[pe]
        for node in asking:
            self._hardware.counted_for.pop(node, None)
        for unit in computing:
            unit.rates.work = self._nobody
        if len(launch.ended_ns) == len(launch.programs):
            self._read(last=len(self._running) == 1)
            self._over[launch] = self._running.pop(launch), len(self._intervals)

    def _read(self, last: bool = False) -> None:
        """Add what was busy since this was called last, if a launch ran; `last` says that none will run now."""
        now, since, used = self._hardware.env.now, self._read_at, self._hardware.used_wires
        numbers, busy, ahead = array("q"), array("d"), []
        for wire, before, taken_until in used:
            wire.fresh = True
            after = wire.busy_ns
            if wire.available_at > now:
                after = wire.busy_by(now)
                ahead.append(wire)
            if taken_until > since:
                before = max(0.0, before - (taken_until - since))
            numbers.append(wire.number)
            busy.append(after - before)
        used.clear()
        for wire in ahead:
            wire.note_use()
        self._read_units(numbers, busy, idle=last or not self._running)
        if self._running:
            self._intervals.append(BusyInterval(now - since, numbers, busy))
        self._read_at = now

    def _read_units(self, numbers: array[int], busy: array[float], idle: bool) -> None:
        """Add the units that were busy; what is under way counts, but there is nothing while no launch runs."""
        before, now, first = self._unit_busy, self._hardware.env.now, len(self._hardware.wires) + 1
        self._unit_busy = [unit.busy_ns if idle else unit.busy_by(now) for unit in self._units]
        grown = [*map(ne, self._unit_busy, before)]
        numbers.extend(compress(range(first, first + len(grown)), grown))
        busy.extend(map(sub, compress(self._unit_busy, grown), compress(before, grown)))

    # Results ------------------------------------------------------------------------------------------

    def intervals(self, launch: Launch | None = None) -> Sequence[BusyInterval]:
        """Return what was busy while a launch ran, or else while any did; nothing of a launch that is not over."""
        if launch is None:
            return self._intervals
        first, end = self._over.get(launch, (0, 0))
        return self._intervals[first:end]

    def busiest(self) -> tuple[LaunchUse, ...]:
        """Return the busiest resource of each kind while any launch ran, the highest first."""
        return busiest_of(self.resources, self._intervals)

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

