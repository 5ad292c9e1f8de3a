"""What phase 1 found out: total time, its phases, the busiest resources, and what was not modelled."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from kernbench_core.host.statistics import Statistic, statistics
from kernbench_core.messages import HostRequest, KernelLaunchMsg, MemoryReadMsg
from kernbench_core.units import format_time

if TYPE_CHECKING:
    from kernbench_core.component import ComponentBase
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.wire import Wire

#: The phases of a run; an instant belongs to the first that applies, the last also takes idle time.
PHASES = ("kernel", "launch", "device_to_host", "host_to_device")
_SECTION = re.compile(r"^(\w+):", re.MULTILINE)

Interval = tuple[float, float]


@attrs.frozen(repr=False)
class ResourceUse:
    """Say how busy a wire, a channel or a pool of servers was: a fraction of its capacity, ns, bytes.

    `alike` is how many resources of this kind were used, and `mean_utilisation` the mean over them.
    """

    name: str
    kind: str
    utilisation: float
    busy_ns: float
    nbytes: int
    alike: int = 1
    mean_utilisation: float = 0.0

    def __repr__(self) -> str:
        return f"<ResourceUse {self.name} ({self.kind}) {self.utilisation:.1%}>"


@attrs.frozen(repr=False)
class NotModelled:
    """Quote one thing that a model of this run ignores, with how many messages crossed that model."""

    sentence: str
    component: str
    count: int

    def __repr__(self) -> str:
        return f"<NotModelled by {self.component}: {textwrap.shorten(self.sentence, 30, placeholder='…')}>"


@attrs.frozen
class LateStart:
    """Say how many ns after the common start stamp a PE began."""

    pe: str
    late_ns: float


@attrs.frozen(repr=False)
class TimingResult:
    """Hold the timing of a run; times in ns, `phases` sum to `total_ns` exactly.

    `hops` counts deliveries over wires and internal wires, `events` all SimPy events, `ops` the records
    of the op log. `wall_s` is real time spent simulating. `busiest` has the busiest resource of each kind.
    `warnings` are those of the compiler, and of who measures launches on the machine, and say what programs asked for
    and were given something else.
    `statistics` are what models counted.
    """

    total_ns: float
    phases: dict[str, float]
    events: int
    hops: int
    ops: int
    wall_s: float
    late_starts: tuple[LateStart, ...]
    busiest: tuple[ResourceUse, ...]
    not_modelled: tuple[NotModelled, ...]
    warnings: tuple[str, ...] = ()
    statistics: tuple[Statistic, ...] = ()

    def __repr__(self) -> str:
        phases = ", ".join(f"{name} {format_time(self.phases[name])}" for name in self.phases)
        return f"<TimingResult {format_time(self.total_ns)} ({phases}), {self.ops:,} ops, {self.events:,} events>"


def timing_result(hardware: Hardware, requests: Sequence[HostRequest], ops: int, wall_s: float) -> TimingResult:
    """Gather the timing of what has run so far."""
    total = hardware.env.now
    return TimingResult(
        total_ns=total,
        phases=phases(total, requests),
        events=hardware.env.events,
        hops=sum(wire.deliveries for wire in hardware.wires),
        ops=ops,
        wall_s=wall_s,
        late_starts=tuple(_late_starts(hardware, requests)),
        busiest=busiest(resource_uses(hardware, total)),
        not_modelled=not_modelled(hardware.components.values()),
        warnings=hardware.graph.warnings,
        statistics=statistics(hardware),
    )


def phases(total: float, requests: Iterable[HostRequest]) -> dict[str, float]:
    """Split the time from 0 to `total` ns into `PHASES`, by what the host had asked for at each instant."""
    return phases_of(total, _phase_intervals(total, requests))


def phases_of(total: float, spans: Mapping[str, Iterable[Interval]]) -> dict[str, float]:
    """Split the time from 0 to `total` ns into `PHASES`, by when each but the last was under way, in ns."""
    split: dict[str, float] = {}
    seen: list[Interval] = []
    covered = 0.0
    for phase in PHASES[:-1]:
        seen += spans[phase]
        now_covered = _length(seen)
        split[phase] = now_covered - covered
        covered = now_covered
    split[PHASES[-1]] = total - covered
    return split


def phase_spans(total: float, requests: Iterable[HostRequest]) -> list[tuple[float, float, str]]:
    """Return (begin, end, phase) in ns: the spans, in order, that tile the time from 0 to `total`; see `phases`."""
    changes: dict[float, dict[str, int]] = {0.0: {}}
    for phase, intervals in _phase_intervals(total, requests).items():
        for begin, end in intervals:
            for time, step in ((begin, 1), (end, -1)):
                at = changes.setdefault(time, {})
                at[phase] = at.get(phase, 0) + step
    open_now = dict.fromkeys(PHASES[:-1], 0)
    spans: list[tuple[float, float, str]] = []
    if not total:
        return spans
    edges = sorted(time for time in changes if time < total)
    for begin, end in zip(edges, [*edges[1:], total], strict=True):
        for phase, step in changes[begin].items():
            open_now[phase] += step
        owner = next((phase for phase, number in open_now.items() if number), PHASES[-1])
        if spans and spans[-1][2] == owner:
            begin = spans.pop()[0]
        spans.append((begin, end, owner))
    return spans


def _phase_intervals(total: float, requests: Iterable[HostRequest]) -> dict[str, list[Interval]]:
    """Return when, in ns, requests of each phase were under way; idle time and copies to the device are the rest."""
    spans: dict[str, list[Interval]] = {"kernel": [], "launch": [], "device_to_host": []}
    for request in requests:
        end = request.response.completed_ns if request.response else total
        if isinstance(request, KernelLaunchMsg):
            launch = request.launch
            spans["launch"].append((request.born, end))
            if launch.started_ns:
                done = len(launch.ended_ns) == len(launch.programs)
                last = max(launch.ended_ns.values()) if done else total
                spans["kernel"].append((min(launch.started_ns.values()), last))
        elif isinstance(request, MemoryReadMsg):
            spans["device_to_host"].append((request.born, end))
    return spans


def busiest(uses: Iterable[ResourceUse]) -> tuple[ResourceUse, ...]:
    """Return the busiest resource of each kind, the busiest kind first."""
    kinds: dict[str, list[ResourceUse]] = {}
    for use in sorted(uses, key=lambda use: (-use.utilisation, use.name)):
        kinds.setdefault(use.kind, []).append(use)
    return tuple(
        attrs.evolve(group[0], alike=len(group), mean_utilisation=sum(use.utilisation for use in group) / len(group))
        for group in kinds.values()
    )


def resource_uses(hardware: Hardware, total: float, above: float = -1.0) -> Iterable[ResourceUse]:
    """Yield the use, until `total` ns, of every wire, channel and server pool that was used at all.

    Only those whose utilisation is `above` a fraction, where one is given.
    """
    if not total:
        return
    kinds: dict[str, str] = hardware.graph.kept.setdefault("wire kinds", {})
    for wire in hardware.wires:
        if wire.busy_ns:
            busy = wire.busy_by(total)
            if busy / total > above:
                kind = kinds.get(wire.name)
                if kind is None:
                    kind = kinds[wire.name] = wire_kind(hardware, wire)
                yield ResourceUse(wire.name, kind, busy / total, busy, wire.bytes_carried)
    for component in hardware.components.values():
        if component.keeps_busy and component.node.kind != "pe_cpu":
            busy = component.busy_by(total)
            if busy:
                share = busy / (total * component.servers)
                if share > above:
                    yield ResourceUse(component.id, component.node.kind, share, busy, 0)


def not_counted(hardware: Hardware) -> Iterable[str]:
    """Yield the units of which nobody counts how busy they, or channels of theirs, are: pure latencies and CPUs."""
    channelled = {wire.name.partition("#")[0] for wire in hardware.wires if "#" in wire.name}
    for component in hardware.components.values():
        counted = component.keeps_busy and component.node.kind != "pe_cpu"
        if not counted and component.id not in channelled:
            yield component.id


def wire_kind(hardware: Hardware, wire: Wire) -> str:
    """Name a wire by its kind of edge, and a channel by the kind of its component."""
    source, arrow, destination = wire.name.partition("->")
    if arrow:
        return f"{hardware.graph.edges[source, destination].kind.value} wire"
    return f"{hardware.components[source.partition('#')[0]].node.kind} channel"


def not_modelled(components: Iterable[ComponentBase]) -> tuple[NotModelled, ...]:
    """Quote the `Ignores` of every model that served anything, with how many messages it served."""
    served: Counter[tuple[str, type]] = Counter()
    beside: Counter[tuple[str, type, str]] = Counter()
    for component in components:
        if component.served:
            key = (component.node.impl, type(component))
            served[key] += component.served
            for sentence in component.ignores:
                beside[(*key, sentence)] += component.served
    listed = [(*key, sentence, count) for key, count in served.items() for sentence in ignored_by(key[1])]
    listed += [(*key, count) for key, count in beside.items()]
    return tuple(
        NotModelled(sentence, impl, count) for impl, _, sentence, count in sorted(listed, key=lambda item: item[0])
    )


def ignored_by(cls: type) -> tuple[str, ...]:
    """Return the sentences of the `Ignores:` section of a model's docstring."""
    section = docstring_section(cls, "Ignores")
    return tuple(part for part in re.split(r"(?<=\.)\s+", section) if part)


def docstring_section(cls: type, name: str) -> str:
    """Return the text of one section (Models, Ignores, Timing, Source) of a docstring on one line."""
    text = inspect.getdoc(cls) or ""
    heads = list(_SECTION.finditer(text))
    for head, following in zip(heads, [*heads[1:], None], strict=False):
        if head.group(1) == name:
            return " ".join(text[head.end() : following.start() if following else len(text)].split())
    return ""


def _late_starts(hardware: Hardware, requests: Iterable[HostRequest]) -> Iterable[LateStart]:
    for request in requests:
        launch = request.launch if isinstance(request, KernelLaunchMsg) else None
        if launch is None or launch.target_start_ns is None:
            continue
        for pe, started in sorted(launch.started_ns.items()):
            if started > launch.target_start_ns:
                yield LateStart(hardware.layout.pes[pe].prefix, started - launch.target_start_ns)


def _length(intervals: Iterable[Interval]) -> float:
    """Return the length of a union of intervals."""
    covered, reached = 0.0, 0.0
    for start, end in sorted(intervals):
        if end > reached:
            covered += end - max(start, reached)
            reached = end
    return covered
