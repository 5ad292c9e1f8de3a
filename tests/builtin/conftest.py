"""What tests of the hardware models share: compiled presets to poke at, and bounds from networkx.

`simulate("tiny", "host.pcie.bandwidth=10 GB/s")` compiles a preset and builds its machine. Its PEs run a
processor that only answers launches, unless another class is given; memory traffic is put straight into
a pe_dma by `move`, into the host by `submit`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import networkx as nx
import pytest

from kernbench_core.component import ComponentBase
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.graph import EdgeKind, Graph
from kernbench_core.host.session import GraphEngine
from kernbench_core.messages import KernelLaunchMsg, Launch, MsgBase, Transaction
from kernbench_core.oplog.description import OpDescription
from kernbench_core.params import Param
from kernbench_core.plugins import Plugins
from kernbench_core.plugins.points import COMPONENTS
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.values.region import Region


def on_grid(ns: float) -> float:
    """Round a duration up to the next multiple of 2^-16 ns."""
    return math.ceil(ns * 65536) / 65536


class Move(MsgBase):
    """Ask a pe_dma to read or write `regions`; stands for the commands and tokens of real kernels."""

    data_op: ClassVar[bool] = True

    def __init__(self, op: str, regions: tuple[Region, ...]) -> None:
        super().__init__()
        self.dma_op = op
        self.regions = regions
        self.ended_ns: float | None = None

    def describe(self) -> OpDescription:
        return OpDescription("memory", f"dma_{self.dma_op}", {"nbytes": sum(r.nbytes for r in self.regions)})

    def answered(self) -> None:
        self.ended_ns = self.tail


class TokenMove(Move):
    """Be logged as tile tokens are: described when its service starts."""

    captured_at_start: ClassVar[bool] = True


def answering(after: Callable[[str], float] = lambda _: 100.0) -> type[ComponentBase]:
    """Return a PE processor that starts as it must and ends each launch `after(its id)` ns later."""

    class AnsweringCpu(ComponentBase):
        PARAMS: ClassVar[tuple[Param, ...]] = (Param("dispatch_overhead", "time", "10 ns", "Not used."),)
        arrived_ns: float | None = None

        def run(self, env: Environment, msg: Any) -> ProcessGenerator:
            launch = msg.launch
            me = next(site.index for site in self.fabric.layout.pes if site.pe_cpu == self.id)
            assert me in msg.targets
            self.arrived_ns = env.now
            if launch.target_start_ns > env.now:
                yield env.timeout(launch.target_start_ns - env.now)
            assert me not in launch.started_ns, "a launch must reach a PE once"
            launch.started_ns[me] = env.now
            yield env.timeout(after(self.id))
            launch.ended_ns[me] = env.now

    return AnsweringCpu


class _Models:
    """Give the built-in models, some of them replaced."""

    def __init__(self, plugins: Plugins, replaced: Mapping[str, type[ComponentBase]]) -> None:
        self._known = plugins.components
        self._replaced = replaced

    def declared(self, impl: str) -> tuple[Param, ...]:
        return self._replaced[impl].PARAMS if impl in self._replaced else self._known.declared(impl)

    def made_for(self, impl: str) -> tuple[str, ...]:
        return () if impl in self._replaced else self._known.made_for(impl)

    def load(self, impl: str) -> type[ComponentBase]:
        return self._replaced.get(impl) or self._known.load(impl)


class Sim:
    """One machine before, while and after it runs."""

    def __init__(self, graph: Graph, models: _Models) -> None:
        self.graph = graph
        self.engine = GraphEngine(graph, models, data=False)
        self.hardware = self.engine.hardware
        self.env = self.engine.env
        self.design = self.engine.device.design
        self.sites = self.design.pes
        self.trips: list[Transaction] = []
        note = self.hardware.note_round_trip

        def keep(transaction: Transaction) -> None:
            self.trips.append(transaction)
            note(transaction)

        self.hardware.note_round_trip = keep  # type: ignore[method-assign]

    def __getitem__(self, node_id: str) -> Any:
        return self.hardware.components[node_id]

    def address(self, unit: str = "hbm0", offset: int = 0, *, sip: int = 0, cube: int = 0) -> int:
        return self.design.address_map.encode(sip, cube, unit, offset)

    def own(self, pe: int, offset: int = 0) -> int:
        """Return an address in the HBM slice of a PE."""
        site = self.sites[pe]
        return self.address(f"hbm{site.pe}", offset, sip=site.sip, cube=site.cube)

    def move(self, op: str, *regions: Region, pe: int = 0, at_ns: float = 0.0, token: bool = False) -> Move:
        """Hand a descriptor to a PE's DMA at `at_ns`, as a command or as a tile token."""
        prefix = self.sites[pe].prefix
        msg = (TokenMove if token else Move)(op, tuple(regions))
        msg.path = (f"{prefix}.pe_cpu", f"{prefix}.pe_dma")
        msg.hop = 1
        self.env.inject(msg, self[f"{prefix}.pe_dma"].arrive, at_ns)
        return msg

    def send(self, path: Sequence[str], op: str, nbytes: int, base: int, at_ns: float = 0.0) -> Transaction:
        """Put one transaction on the first wire of `path` at `at_ns`."""
        regions = (Region(base, nbytes),) if nbytes else ()
        sent = Transaction(op, regions, nbytes, tuple(path), self.hardware.note_round_trip)
        self.hardware.issued += 1

        def enter(_: Any) -> None:
            sent.born = sent.head = sent.tail = self.env.now
            sent.hop = 1
            self[path[0]].out_ports[path[1]].send(sent, self.env.now, self.env.now)

        self.env.inject(MsgBase(), enter, at_ns)
        return sent

    def launch(
        self, pes: Iterable[int] | None = None, arguments: int = 3, at_ns: float = 0.0
    ) -> KernelLaunchMsg:
        """Ask the host to launch one program on each of `pes`, at `at_ns`."""
        chosen = range(len(self.sites)) if pes is None else pes
        programs = {pe: ((i, 0, 0),) for i, pe in enumerate(chosen)}
        names = {f"a{i}": i for i in range(arguments)}
        request = KernelLaunchMsg(Launch(lambda tl: None, names, (len(programs), 1, 1), programs))
        self.engine.shared.requests.append(request)
        self.env.inject(request, self["host"].arrive, at_ns)
        return request

    def run(self) -> Sim:
        """Let everything happen, and check what holds for every round trip."""
        self.engine.advance()
        assert self.hardware.issued == self.hardware.completed == len(self.trips)
        for trip in self.trips:
            parts = trip.propagation + trip.serialisation + trip.overhead + trip.queueing + trip.service
            assert parts == trip.tail - trip.born
            assert min(trip.propagation, trip.serialisation, trip.overhead, trip.queueing, trip.service) >= 0
        return self


class Oracle:
    """Work out paths and round trips with networkx and the figures of the graph alone."""

    ENDS = ("host", "io_cpu", "m_cpu", "hbm_ctrl", "sram")
    GATEWAYS = ("ucie", "io_ucie")
    #: What a border costs beside its latency, so that paths cross as few packages, then IO chiplets, then cubes.
    BORDERS: ClassVar[dict[EdgeKind, float]] = {EdgeKind.SCALE_UP: 1e7, EdgeKind.IO_NOC: 1e5, EdgeKind.UCIE: 1e3}

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.net = nx.DiGraph()
        for edge in graph.edges.values():
            if edge.kind not in (EdgeKind.COMMAND, EdgeKind.PE):
                for src in self._sides(edge.src, edge.kind, leaving=True):
                    dst = self._sides(edge.dst, edge.kind, leaving=False)[0]
                    self.net.add_edge(src, dst, weight=edge.latency + 1e-6 + self.BORDERS.get(edge.kind, 0.0))

    def _sides(self, node: str, kind: EdgeKind, *, leaving: bool) -> list[tuple[str, Any]]:
        """Split an endpoint in two, and a gateway by the kind of edge that a path came by."""
        found = self.graph.nodes[node]
        if found.kind in self.ENDS or found.pe is not None:
            return [(node, "out" if leaving else "in")]
        if found.kind not in self.GATEWAYS:
            return [(node, None)]
        kinds = {EdgeKind.UCIE, EdgeKind.ATTACH if found.kind == "ucie" else EdgeKind.IO_NOC}
        return [(node, other) for other in kinds - {kind}] if leaving else [(node, kind)]

    def path(self, src: str, dst: str) -> list[str]:
        """Return a path of fewest borders, least wire latency, fewest hops, that passes through no endpoint."""
        if (src, dst) in self.graph.edges:
            return [src, dst]
        return [node for node, _ in nx.dijkstra_path(self.net, (src, "out"), (dst, "in"))]

    def fixed(self, path: Sequence[str], *, last: bool = True) -> float:
        """Return the overheads and wire latencies along a path, with or without the last node's overhead."""
        nodes = path[1:] if last else path[1:-1]
        latencies = sum(self.graph.edges[pair].latency for pair in pairwise(path))
        return latencies + sum(on_grid(self.graph.nodes[node].params["overhead"]) for node in nodes)

    def slowest(self, path: Sequence[str], nbytes: int) -> float:
        """Return the longest time that `nbytes` occupy any wire of a path, with their headers."""
        times = []
        for pair in pairwise(path):
            edge = self.graph.edges[pair]
            total = nbytes + max(1, math.ceil(nbytes / edge.payload_bytes)) * edge.header_bytes
            times.append(on_grid(total / edge.bandwidth))
        return max(times)

    def round_trip(
        self, src: str, memory: str, op: str, nbytes: int, channel_bytes: int, path: Sequence[str] | None = None
    ) -> float:
        """Return how long one lone transaction takes, when its busiest channel carries `channel_bytes`."""
        there = self.path(src, memory) if path is None else list(path)
        back = there[::-1]
        params = self.graph.nodes[memory].params
        hbm = self.graph.nodes[memory].kind == "hbm_ctrl"
        prefix = "channel_" if hbm else ""
        rate = params[f"{prefix}bandwidth"] * params.get("efficiency", 1.0)
        channel = on_grid(channel_bytes / rate * params.get("banks", 1))
        latency = on_grid(params[f"{prefix}latency"]) if nbytes else 0.0
        fixed = self.fixed(there) + self.fixed(back, last=False) + latency
        if op == "read":
            return fixed + self.slowest(there, 0) + max(channel, self.slowest(back, nbytes))
        return fixed + max(channel, self.slowest(there, nbytes)) + self.slowest(back, 0)

    def launch_reach(self, path: Sequence[str], nbytes: int) -> float:
        """Return how long a lone launch message takes along one step, its last node's overhead included."""
        overheads = [self.graph.nodes[node].params.get("overhead", 0.0) for node in path[1:]]
        latencies = [self.graph.edges[pair].latency for pair in pairwise(path)]
        return sum(latencies) + sum(map(on_grid, overheads)) + self.slowest(path, nbytes)


@pytest.fixture
def simulate(plugins: Plugins, _graphs: dict[Any, Graph]) -> Callable[..., Sim]:
    """Return a function that builds the machine of a preset, with `--set` like changes and replaced models."""

    def build(preset: str = "tiny", *sets: str, cpu: type[ComponentBase] | None = None, **replaced: Any) -> Sim:
        classes = {"builtin.pe_cpu": cpu or answering(), **{f"builtin.{kind}": cls for kind, cls in replaced.items()}}
        models = _Models(plugins, classes)
        key = (preset, sets, cpu)  # whose parameters are in the graph
        if key not in _graphs or replaced:
            offered = plugins.having(COMPONENTS, models)
            _graphs[key] = compile_topology(configure(plugins, preset, sets=sets), offered)
        return Sim(_graphs[key], models)

    return build


@pytest.fixture(scope="session")
def _graphs() -> dict[Any, Graph]:
    return {}


@pytest.fixture
def oracle() -> type[Oracle]:
    return Oracle


@pytest.fixture(name="answering")
def _answering() -> Callable[..., type[ComponentBase]]:
    return answering


@pytest.fixture(name="grid")
def _grid() -> Callable[[float], float]:
    return on_grid
