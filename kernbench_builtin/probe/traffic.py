"""Drive a stand-alone mesh with synthetic traffic, and measure latency, throughput and the use of every wire.

Nodes make packets whatever became of those before (`traffic_sources`), so sources queue without limit. A packet's
latency runs from the cycle that makes it to the arrival of its last byte behind the destination's interface. What is
made during warm-up only fills the mesh; what is made in the measured window is measured, however late it arrives;
traffic goes on until all of it has, or the drain is over.
"""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from attrs import field, frozen

from kernbench_builtin.machines import Mesh, naming
from kernbench_builtin.probe.driven.packets import Meter, Packet
from kernbench_builtin.probe.traffic_patterns import Pattern, wire_shares
from kernbench_builtin.probe.traffic_sources import dispersion, make_source
from kernbench_core.component import ComponentBase
from kernbench_core.engine import ComponentClasses, Hardware, Progress, component_error
from kernbench_core.environment import DELIVERY, Environment
from kernbench_core.errors import ConfigError, KernbenchError
from kernbench_core.host import NotModelled, not_modelled
from kernbench_core.process import INTERRUPTS
from kernbench_core.topology import PathRouter
from kernbench_core.units import GRID_NS, format_bytes, grid_ceil
from kernbench_core.wire import Wire

EdgeId: TypeAlias = tuple[str, str]

NEAR = 0.6
"""Share of the ceiling above which buffers and arbitration of a network show, and routers without them do not hold."""
GROWTH = 0.01
"""Share of the packets of the window by which queues must have grown in it to be growing without end."""
_SIGMAS = 4.0
_BLOCK = 256
_AT_ONCE = 16
_BATCHES = 10
#: Student's t for 95 % of both sides and one degree of freedom less than batches.
_STUDENT = 2.262157
_ROUTES = 2**17


@frozen
class Window:
    """How long a measurement takes, in cycles; `drain` is the most that is waited for measured packets after it."""

    warm_up: int = 1000
    measured: int = 10000
    drain: int = 11000


@frozen
class Need:
    """What a load needs of a wire: the part of its time, and of that of the port behind it."""

    wire: float
    port: float = 0.0

    @property
    def most(self) -> float:
        """What the slower of both needs."""
        return max(self.wire, self.port)


@frozen
class WireUse:
    """How busy a wire was in the measured window: the share of its time, and of its time that was expected."""

    edge: EdgeId
    utilisation: float
    expected: float


@frozen
class LoadPoint:
    """What was measured at one load. Rates are flits per node and cycle, latencies cycles, shares from 0 to 1.

    `offered` is what sources really made in the window, `delivered` what arrived in it, over all nodes. `sustained`
    is what of it the pattern gets through: `delivered`, or less where the flows across the wires that set the ceiling
    get less than their part of it. `accepted` is `delivered`, or in a saturated network `sustained`; neither of the two
    is more than the ceiling. `growth` is the part of what was made in the window by which queues had grown at its end.
    `queued` is the part of the mean latency that is waiting, at sources and in routers; `mean_ci95` is half the
    width of the mean's 95 % confidence interval. Latencies are None when no measured packet arrived.
    """

    load: float
    state: str
    offered: float
    delivered: float
    accepted: float
    sustained: float
    growth: float
    mean: float | None
    mean_ci95: float | None
    p50: float | None
    p99: float | None
    longest: float | None
    queued: float | None
    hops: float | None
    packets: int
    unfinished: int
    busiest: WireUse
    wires: tuple[WireUse, ...]
    events: int
    not_modelled: tuple[NotModelled, ...]


@frozen
class TrafficSetup:
    """A mesh, the models of its nodes, what flows over it, and how it is measured.

    `flits` is the size of every packet. With a `burst` they come in bursts, of so many packets on average.
    `on_progress` is told of each block of cycles which part of the load's cycles, but for the drain, is over.
    """

    mesh: Mesh
    components: ComponentClasses = field(repr=False)
    pattern: Pattern
    flits: int = 1
    window: Window = Window()
    seed: int = 0
    burst: float | None = None
    on_progress: Callable[[Progress], None] | None = field(default=None, eq=False, repr=False)

    @cached_property
    def needs(self) -> Mapping[EdgeId, Need]:
        """What a unit of load (flits/node/cycle) needs of each wire; ConfigError where models do not go together."""
        nbytes, built = self.flits * self.mesh.flit_bytes, self.build().components
        each = {edge: share / (self.flits * self.mesh.cycle_ns) for edge, share in self._shares.items()}
        return {
            (a, b): Need(built[a].sending_ns(nbytes, b) * rate, built[b].taking_ns(nbytes, a) * rate)
            for (a, b), rate in each.items()
        }

    @cached_property
    def tight(self) -> frozenset[EdgeId]:
        """The wires that set the ceiling: those that need as much as the one that needs most."""
        most = max(need.most for need in self.needs.values())
        return frozenset(edge for edge, need in self.needs.items() if need.most >= most * (1 - 1e-9))

    @cached_property
    def tight_crossed(self) -> float:
        """How many of these wires a packet crosses on average."""
        return sum(share for edge, share in self._shares.items() if edge in self.tight) / self.mesh.places

    def ceiling(self) -> tuple[float, EdgeId]:
        """Return the load at which the first wire, or port behind it, is always busy, and which wire.

        No network of such wires and flits can exceed it. Of equally busy wires it is the first between routers by name,
        then the first of the others.
        """
        first = min((edge for edge in self.needs if edge in self.tight), key=_links_first)
        return 1.0 / self.needs[first].most, first

    def build(self, env: Environment | None = None) -> Hardware:
        """Return the components of the mesh, joined and connected; ConfigError where they do not go together."""
        check_flits(self.mesh)
        hardware = Hardware(env or Environment(), self.mesh, routes=PathRouter(self.mesh))
        hardware.build(self.components)
        return hardware

    def measure(self, load: float) -> LoadPoint:
        """Simulate one load in flits/node/cycle, above 0, at most 1, from an empty mesh; same input, same result.

        Raises:
            ComponentError: a model raised or broke its contract.
            UsageError: bursts cannot have this load.
        """
        return _Run(self, load).measured()

    @cached_property
    def _shares(self) -> dict[EdgeId, float]:
        return wire_shares(self.mesh, self.pattern)


def check_flits(mesh: Mesh) -> None:
    """Raise ConfigError where routers cut packets into flits that links and interfaces know nothing of."""
    width = mesh.flit_bytes
    for node in mesh.nodes.values():
        size = node.params.get("flit")
        if isinstance(size, int) and size % width and width % size:
            raise ConfigError(
                f"{node.id}: flit must be the width of a link, {format_bytes(width)}, a multiple of it or a whole part "
                f"of it, not {format_bytes(size)}; give both the same."
            )


def _links_first(edge: EdgeId) -> tuple[bool, tuple[int, int], tuple[int, int]]:
    """Order wires: those between routers first, by row and column of their ends."""
    source, destination = (naming.mesh_cell(node) for node in edge)
    return source == destination, source, destination


class _Run:
    """One simulation of one load."""

    def __init__(self, traffic: TrafficSetup, load: float) -> None:
        self.traffic = traffic
        self.load = load
        self.env = Environment()
        self.hardware = traffic.build(self.env)
        window = traffic.window
        self.meter = Meter(self._time(window.warm_up), self._time(window.warm_up + window.measured))
        self._random = np.random.default_rng(traffic.seed)
        self._nbytes = traffic.flits * traffic.mesh.flit_bytes
        self._routes: dict[int, tuple[tuple[str, ...], int]] = {}
        self._source = make_source(self._random, traffic.mesh.places, load, traffic.flits, traffic.burst)
        interfaces = [traffic.mesh.route(place, place)[0] for place in range(traffic.mesh.places)]
        self._entries = [(self.hardware.components[name].arrive,) for name in interfaces]
        self._made = self._made_before = 0
        self._began = clock.perf_counter()

    def measured(self) -> LoadPoint:
        """Run warm-up, measured window and drain."""
        window = self.traffic.window
        begin, end = window.warm_up, window.warm_up + window.measured
        self._drive(0, begin)
        before, self._made_before = self._busy(begin), self._made
        self._drive(begin, end)
        after, made = self._busy(end), self._made - self._made_before
        for start in range(end, end + window.drain, _BLOCK):
            if len(self.meter.latencies) == made:
                break
            self._drive(start, min(start + _BLOCK, end + window.drain))
        length = self.meter.end - self.meter.begin
        return self._point(made, {edge: (after[edge] - before[edge]) / length for edge in after})

    def _drive(self, begin: int, end: int) -> None:
        """Make the packets of the cycles from `begin` to before `end`, and simulate to the end of the last."""
        for start in range(begin, end, _BLOCK):
            stop = min(start + _BLOCK, end)
            try:
                for made in self._make(start, stop - start):
                    self.env.advance(2**62, self._time(made) - GRID_NS)
            except (KernbenchError, *INTERRUPTS):
                raise
            except BaseException as error:
                raise component_error(self.hardware, error) from error
            self._report_progress(stop)

    def _report_progress(self, cycle: int) -> None:
        """Say how far the load is; the drain ends sooner or later."""
        window, told = self.traffic.window, self.traffic.on_progress
        if told is not None:
            part = min(0.99, cycle / (window.warm_up + window.measured))
            took = clock.perf_counter() - self._began
            told(Progress(0.0, 0, took, part, f"load {self.load:.4g}", step_s=took))

    def _make(self, start: int, cycles: int) -> Iterator[int]:
        """Make the packets of some cycles, a few at a time: yield before which cycle all are there now."""
        places, routes, queue = self.traffic.mesh.places, self._routes, self.env.clock
        when, sources = self._source.make(start, cycles)
        goals = self.traffic.pattern.draw(self._random, sources)
        self._made += len(sources)
        meter, nbytes, entries, tight = self.meter, self._nbytes, self._entries, self.traffic.tight
        times = [self._time(start + cycle) for cycle in range(cycles)]
        made, first = start + _AT_ONCE, queue.injected + 1  # few wait in the queue of events, in the order of all
        queue.injected += len(sources)
        packets = zip(when.tolist(), sources.tolist(), goals.tolist(), strict=True)
        for key, (cycle, source, goal) in enumerate(packets, first):
            while cycle >= made:
                yield made
                made += _AT_ONCE
            route = routes.get(source * places + goal)
            if route is None:
                path = self.traffic.mesh.route(source, goal)
                route = path, sum(wire in tight for wire in pairwise(path))
                if len(routes) < _ROUTES:
                    routes[source * places + goal] = route
            packet = Packet(nbytes, route[0], meter, route[1])
            packet.head = packet.tail = packet.born = time = times[cycle - start]
            packet.callbacks = entries[source]
            queue.push(time, DELIVERY, key, packet)
        yield start + cycles

    def _modelling(self) -> list[ComponentBase]:
        """Return the components whose limits are those of the mesh: interfaces only where routers are alike."""
        routers = {node.impl for node in self.traffic.mesh.nodes.values() if node.kind == "router"}
        return [each for each in self.hardware.components.values() if each.node.impl in routers]

    def _time(self, cycle: int) -> float:
        return grid_ceil(cycle * self.traffic.mesh.cycle_ns)

    def _busy(self, cycle: int) -> dict[EdgeId, float]:
        """Return how long each wire has been busy up to a cycle, in ns: what it is booked for later is not yet."""
        now = self._time(cycle)
        return {edge: self._wire(edge).busy_by(now) for edge in self.traffic.mesh.edges}

    def _wire(self, edge: EdgeId) -> Wire:
        return self.hardware.components[edge[0]].out_ports[edge[1]]

    def _point(self, made: int, uses: dict[EdgeId, float]) -> LoadPoint:
        traffic, meter = self.traffic, self.meter
        needs, (ceiling, _) = traffic.needs, traffic.ceiling()
        # what is booked ahead at either end of the window is known but for its gaps
        shares = {edge: max(0.0, min(1.0, use)) for edge, use in uses.items()}
        wires = tuple(WireUse(edge, share, needs[edge].wire * self.load) for edge, share in shares.items())
        cycle, slots = traffic.mesh.cycle_ns, traffic.mesh.places * traffic.window.measured
        count = len(meter.latencies)
        arrived = np.frombuffer(meter.latencies, dtype=np.float64) / cycle if count else None
        cycles = None if arrived is None else np.sort(arrived)
        unfinished = made - count
        delivered = meter.arrived_in_window / traffic.mesh.flit_bytes / slots
        sustained = min(ceiling, delivered, meter.tight_crossed * traffic.flits / traffic.tight_crossed / slots)
        inside = self._made_before - meter.arrived_before // self._nbytes
        filling = self._filling(made, inside)
        growth = made - meter.arrived_in_window // self._nbytes - filling
        # at random, what is inside varies by about its root at each end of the window without growing; bursts vary more
        varies = max(1.0, dispersion(self.load, traffic.flits, traffic.burst))
        growing = growth > max(GROWTH * made, _SIGMAS * math.sqrt(varies * (2 * inside + filling + abs(growth))))
        buffered = all(each.back_pressure for each in self._modelling() if each.node.kind == "router")
        state = state_of(self.load, ceiling, unfinished, growing, buffered)
        return LoadPoint(
            load=self.load,
            state=state,
            offered=made * traffic.flits / slots,
            delivered=delivered,
            accepted=min(delivered, ceiling, *((sustained,) if state == "saturated" else ())),
            sustained=sustained,
            growth=growth / made if made else 0.0,
            mean=None if cycles is None else float(cycles.mean()),
            mean_ci95=None if arrived is None else half_width(arrived),
            p50=None if cycles is None else rank(cycles, 0.50),
            p99=None if cycles is None else rank(cycles, 0.99),
            longest=None if cycles is None else float(cycles[-1]),
            queued=meter.queueing / count / cycle if count else None,
            hops=meter.hops / count if count else None,
            packets=made,
            unfinished=unfinished,
            busiest=max(wires, key=lambda use: (use.utilisation, not _links_first(use.edge)[0])),
            wires=wires,
            events=self.env.events,
            not_modelled=not_modelled(self._modelling()),
        )

    def _filling(self, made: int, inside: int) -> float:
        """Return by how many packets a mesh that is not full yet fills without any queue.

        By Little's law it is full with the packets of as long as their way takes without waiting.
        """
        meter = self.meter
        way = (sum(meter.latencies) - meter.queueing) / max(1, len(meter.latencies))
        return max(0.0, made * way / (meter.end - meter.begin) - inside)


def state_of(load: float, ceiling: float, unfinished: int, growing: bool = False, buffered: bool = False) -> str:
    """Say how far a load can be trusted: `stable`, `near` the ceiling, or `saturated` (queues grow without end).

    None is too near the ceiling for routers whose buffers are modelled (`buffered`).
    """
    if load >= ceiling * (1 - 1e-9) or unfinished or growing:
        return "saturated"
    return "near" if load > NEAR * ceiling * (1 + 1e-9) and not buffered else "stable"


def rank(ordered: np.ndarray, share: float) -> float:
    """Return the smallest of sorted values that at least this share of them does not exceed (nearest rank)."""
    return float(ordered[max(0, int(np.ceil(share * len(ordered) - 1e-9)) - 1)])


def half_width(values: np.ndarray) -> float | None:
    """Return half the width of the 95 % confidence interval of the mean, from the means of ten batches in order.

    None for fewer than a hundred values. Batches make up for that latencies one after another are alike.
    """
    if len(values) < 100:
        return None
    means = [float(batch.mean()) for batch in np.array_split(values, _BATCHES)]
    return float(_STUDENT * np.std(means, ddof=1) / math.sqrt(_BATCHES))


def links(uses: Iterable[WireUse]) -> list[WireUse]:
    """Return the wires between routers, without those of interfaces."""
    return [use for use in uses if not _links_first(use.edge)[0]]
