"""Probe a machine: lone transfers between host, PEs and memories, each beside its lower bound.

Every transfer is simulated by an engine of its own, which holds just the nodes that the transfer can touch: it meets
nobody, and nothing of an earlier one is left behind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from attrs import evolve, frozen

from kernbench_builtin.machines import naming
from kernbench_core.engine import formula_latency
from kernbench_core.errors import UsageError
from kernbench_core.graph import Graph, PeSite
from kernbench_core.host import GraphEngine
from kernbench_core.messages import Command, MemoryReadMsg, MemoryWriteMsg, Transaction
from kernbench_core.params import did_you_mean
from kernbench_core.topology import Machine, PathRouter, design_of
from kernbench_core.topology.naming import cube_unit, parse, pe_prefix, pe_unit
from kernbench_core.values import Region
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_core.component import ComponentBase
    from kernbench_core.engine import ComponentClasses
    from kernbench_core.fabric import RoundTrip

MEMORIES = ("hbm_ctrl", "sram", "pe_tcm")
"""Kinds of nodes that a transfer may lead to."""


@frozen
class Case:
    """One kind of transfer: `op` ("read" or "write") of `memory`, asked for by `source` (host or a pe_dma)."""

    name: str
    op: str
    source: str
    memory: str


@frozen
class Resource:
    """What a transfer occupies: a wire `a->b`, or the channels of a memory `m#`, and for how long (ns)."""

    name: str
    busy_ns: float


@frozen
class MeasuredTransfer:
    """A lone transfer: `total_ns` as its source sees it, of which `fabric_ns` for its quickest chunk's round trip.

    `bound_ns` is the least that the round trips of its chunks take in all; `binding` the wire or channel that is
    occupied longest. `exact` says that every model on the way claims to take no more than its bound when alone.
    """

    case: Case
    nbytes: int
    path: tuple[str, ...]
    distance_ns: float
    bound_ns: float
    total_ns: float
    fabric_ns: float
    chunks: int
    binding: Resource
    exact: bool

    @property
    def bandwidth(self) -> float:
        """Bytes per ns."""
        return self.nbytes / self.total_ns

    @property
    def set_up_ns(self) -> float:
        """What the source itself takes, of a lone chunk."""
        return self.total_ns - self.fabric_ns


class _Transfer(Command):
    """Ask a pe_dma to move `regions`, from outside: nobody runs a kernel."""

    __slots__ = ("dma_op", "regions", "total")

    serves: ClassVar[str] = "pe_dma"
    data_op: ClassVar[bool] = False

    def __init__(self, op: str, regions: tuple[Region, ...], path: tuple[str, ...]) -> None:
        super().__init__((0, 0))
        self.dma_op = op
        self.regions = regions
        self.total = sum(region.nbytes for region in regions)
        self.path = path


class Prober:
    """Measure transfers on one compiled machine."""

    def __init__(self, graph: Graph, components: ComponentClasses) -> None:
        self.graph = graph
        self.design = design_of(graph)
        self._components = components
        self._router = PathRouter(graph)

    # What to measure ------------------------------------------------------------------------------

    def cases(self, pe: PeSite | None = None) -> list[Case]:
        """Return the transfers between the host, one PE (default: the first) and memories near and far.

        Near and far are by the latency of the wires; what the machine does not have is left out.
        """
        site = pe or self.design.pes[0]
        own = site.hbm_ctrl
        found = [Case("host to HBM", "write", naming.HOST, own), Case("HBM to host", "read", naming.HOST, own)]
        targets = list(self._targets(site))
        for op, verb in (("read", "load"), ("write", "store")):
            found += [Case(f"{verb} {name}", op, self._dma(site), memory) for name, memory in targets]
        return found

    def case(self, source: str, target: str) -> list[Case]:
        """Return the transfers between two named nodes: from host or PE to a memory, or from a memory to them.

        Raises:
            UsageError: a name is no node that a transfer can begin or end at.
        """
        first, second = self._end("--from", source), self._end("--to", target)
        kinds = [self.graph.nodes[node].kind for node in (first, second)]
        memories = [kind in MEMORIES for kind in kinds]
        if memories[0] == memories[1]:
            raise UsageError(
                f"options --from and --to must name the host or a PE on one side and a memory on the other, not "
                f"{source!r} and {target!r}; a write goes from the first to the second, a read the other way round."
            )
        asker, memory, op = (second, first, "read") if memories[0] else (first, second, "write")
        return [Case(f"{source} to {target}", op, asker, memory)]

    def _end(self, option: str, name: str) -> str:
        """Return the node that a transfer named so begins or ends at: for a PE its pe_dma."""
        pes = {site.prefix: site for site in self.design.pes}
        if name in pes:
            return self._dma(pes[name])
        node = self.graph.nodes.get(name)
        if node is not None and (node.kind in ("host", "pe_dma", *MEMORIES)):
            return name
        known = [*pes, *(node.id for node in self.graph.nodes.values() if node.kind in ("host", *MEMORIES))]
        raise UsageError(
            f"option {option} must name the host, a PE or a memory (hbm_ctrl, sram, pe_tcm), not {brief(name)}."
            f"{did_you_mean(name, known)}"
        )

    def _dma(self, site: PeSite) -> str:
        return pe_unit(site.prefix, "pe_dma")

    def _targets(self, site: PeSite) -> Iterator[tuple[str, str]]:
        """Yield (name, memory) for what a PE reaches, near to far."""
        yield "own HBM", site.hbm_ctrl
        others = [other for other in self.design.pes if other is not site]
        cube = [other for other in others if (other.sip, other.cube) == (site.sip, site.cube)]
        yield from self._near_and_far(site, [other.hbm_ctrl for other in cube], "{} PE's HBM")
        yield "SRAM", cube_unit(site.sip, site.cube, "sram")
        # of another cube, the slice that is nearest: what is left is the cost of the way there
        cubes = [other.hbm_ctrl for other in others if other.sip == site.sip and other.cube != site.cube]
        yield from self._near_and_far(site, self._nearest_of_each(site, cubes, 2), "{} cube")
        sips = [other.hbm_ctrl for other in others if other.sip != site.sip]
        yield from self._near_and_far(site, self._nearest_of_each(site, sips, 1), "{} SIP")

    def _nearest_of_each(self, site: PeSite, memories: list[str], parts: int) -> list[str]:
        """Return the nearest memory of each SIP (`parts` 1) or cube (`parts` 2)."""
        groups: dict[str, list[str]] = {}
        for memory in memories:
            groups.setdefault(".".join(memory.split(".")[:parts]), []).append(memory)
        return [min(group, key=lambda memory: self._distance(self._dma(site), memory)) for group in groups.values()]

    def _near_and_far(self, site: PeSite, memories: list[str], name: str) -> Iterator[tuple[str, str]]:
        if not memories:
            return
        ordered = sorted(memories, key=lambda memory: self._distance(self._dma(site), memory))
        near, far = ordered[0], ordered[-1]
        if self._distance(self._dma(site), near) == self._distance(self._dma(site), far):
            yield name.format("other"), near
            return
        yield name.format("nearest"), near
        yield name.format("farthest"), far

    def _distance(self, source: str, memory: str) -> float:
        """Return the wire latencies on the way, in ns, one way."""
        return sum(self.graph.edges[pair].latency for pair in pairwise(self.path(source, memory)))

    def path(self, source: str, memory: str) -> tuple[str, ...]:
        """Return the nodes from a source to a memory."""
        return self._router.find_memory_path(source, memory)

    # Measuring ------------------------------------------------------------------------------------

    def engine(self, case: Case, *, wider: float = 1.0) -> GraphEngine:
        """Return a fresh engine of the nodes that a transfer can touch; its edges are `wider` times as wide."""
        path = self.path(case.source, case.memory)
        prefixes = {prefix for node in path if (prefix := pe_prefix(node)) is not None}
        nodes = {
            node.id: node
            for node in self.graph.nodes.values()
            if node.id in path or pe_prefix(node.id) in prefixes
        }
        edges = [
            evolve(edge, bandwidth=edge.bandwidth * wider)
            for (src, dst), edge in self.graph.edges.items()
            if src in nodes and dst in nodes
        ]
        machine = Machine.of_graph(Graph.of(nodes.values(), edges), self.design)
        return GraphEngine(machine, self._components, data=False, log=False)

    def measure(self, case: Case, nbytes: int, *, wider: float = 1.0) -> MeasuredTransfer:
        """Simulate one transfer of `nbytes` from the start of the memory."""
        engine = self.engine(case, wider=wider)
        regions = (Region(self.base(case.memory), nbytes),)
        total = self._host(engine, case, regions) if case.source == naming.HOST else self._pe(engine, case, regions)
        trips = engine.hardware.round_trips.values()
        binding = _binding(engine, lone_transaction(self, case, nbytes))
        path = self.path(case.source, case.memory)
        passed = [engine.hardware.components[node] for node in path[1:]]
        return MeasuredTransfer(
            case,
            nbytes,
            path,
            self._distance(case.source, case.memory),
            _least_ns(engine, trips, lone_transaction(self, case, nbytes), binding.busy_ns),
            total,
            min(trip.least_ns for trip in trips),
            engine.hardware.completed,
            binding,
            all(node.bound_is_exact and not node.run_style for node in passed),
        )

    def capacity(self, case: Case) -> int:
        """Return the bytes of the case's memory."""
        kind = {"hbm_ctrl": "hbm", "pe_tcm": "tcm"}.get(self.graph.nodes[case.memory].kind, "sram")
        return self.design.address_map.capacity(kind)

    def base(self, memory: str) -> int:
        """Return the first physical address of a memory."""
        node, place = self.graph.nodes[memory], parse(memory)
        assert node.sip is not None
        assert node.cube is not None
        unit = {"sram": "sram", "pe_tcm": f"tcm{place.pe}"}.get(node.kind) or f"hbm{place.name[len('hbm_ctrl') :]}"
        return self.design.address_map.encode(node.sip, node.cube, unit)

    def _host(self, engine: GraphEngine, case: Case, regions: tuple[Region, ...]) -> float:
        request = MemoryReadMsg(regions) if case.op == "read" else MemoryWriteMsg(regions)
        engine.submit(request)
        engine.advance()
        assert request.response is not None
        return request.response.completed_ns - request.born

    def _pe(self, engine: GraphEngine, case: Case, regions: tuple[Region, ...]) -> float:
        asked = _Transfer(case.op, regions, (case.source,))
        engine.env.inject(asked, engine.hardware.components[case.source].arrive)
        engine.advance()
        return asked.elapsed


def lone_transaction(prober: Prober, case: Case, nbytes: int, *, offset: int = 0) -> Transaction:
    """Return one transaction of `nbytes` from `offset` of the case's memory, with its lifecycle not yet begun."""
    region = Region(prober.base(case.memory) + offset, nbytes)
    return Transaction(case.op, (region,), nbytes, prober.path(case.source, case.memory), _nothing)


def _nothing(_: Transaction) -> None:
    """Ignore an answer that never comes."""


def _least_ns(engine: GraphEngine, trips: Collection[RoundTrip], whole: Transaction, busy_ns: float) -> float:
    """Return the least time of a transfer whose chunks made `trips` and occupy what is binding for `busy_ns` in all.

    Some chunk comes to what is binding first, and some chunk goes on from there last: none of these ways is shorter
    than the shortest of a chunk. A `whole` transfer at once takes as long where nothing stores it, and longer where a
    node does: it stores one chunk while the next one is on the wire.
    """

    def alone_ns(transaction: Transaction) -> float:
        return formula_latency(engine.graph, engine.hardware.components, transaction)

    lone = [(alone_ns(_like(trip)), _binding(engine, _like(trip)).busy_ns) for trip in trips]
    in_turn_ns = max(*(took for took, _ in lone), min(took - busy for took, busy in lone) + busy_ns)
    return min(alone_ns(whole), in_turn_ns)  # the first is without the rounding of differences


def _like(trip: RoundTrip) -> Transaction:
    """Return a transaction like those that made the trip, not yet sent."""
    return Transaction(trip.op, trip.regions, trip.total, trip.path, _nothing)


def _binding(engine: GraphEngine, transaction: Transaction) -> Resource:
    """Return what a transaction occupies longest."""
    return max(resources(engine, transaction), key=lambda resource: resource.busy_ns)


def resources(engine: GraphEngine, transaction: Transaction) -> Iterator[Resource]:
    """Yield what a transaction occupies, there and back: every wire, and every channel of the memory."""
    components: dict[str, ComponentBase] = engine.hardware.components
    memory = components[transaction.path[-1]]
    used: list[Any] = list(memory.channels(transaction))
    for leg in range(2):
        for source, destination in pairwise(transaction.path):
            wire = components[source].out_ports[destination]
            yield Resource(wire.name, wire.duration(transaction.nbytes))
        if not leg:
            transaction.turn_around()
    if used:
        nbytes, bandwidth, _ = max(used, key=lambda channel: channel[0] / channel[1])
        yield Resource(f"{memory.id}#", nbytes / bandwidth)
