"""What the components of one run share: clock, graph, routes, memory, op log. One object per run."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import attrs

from kernbench_core.environment import Environment
from kernbench_core.errors import ConfigError
from kernbench_core.values.chunking import Chunk, chunks
from kernbench_core.values.region import Region
from kernbench_core.wire import Wire

if TYPE_CHECKING:
    from kernbench_core.component import ComponentBase
    from kernbench_core.compute.on_demand import OnDemand
    from kernbench_core.graph import Graph
    from kernbench_core.kernel.queues import Queues
    from kernbench_core.memory.device_memory import DeviceMemory
    from kernbench_core.memory.hazards import Hazards
    from kernbench_core.memory.scratchpad_map import TcmRecorder
    from kernbench_core.messages import Launch, MsgBase, Transaction
    from kernbench_core.oplog.log import OpLogger
    from kernbench_core.registry import Provider
    from kernbench_core.topology.design import Design
    from kernbench_core.topology.resolver import AddressResolver
    from kernbench_core.topology.routing import PathRouter
    from kernbench_core.values.memory_store import MemoryStore


#: Transfers whose chunks are remembered.
MOST_CUT = 1024


@attrs.frozen
class RoundTrip:
    """Keep what the lower bound of a transaction needs, and the time in ns that it really took."""

    least_ns: float
    path: tuple[str, ...]
    op: str
    regions: tuple[Region, ...]
    total: int


@attrs.frozen
class OneWay:
    """Keep the path and the bytes of a message that nothing answers, and the time in ns that it really took."""

    least_ns: float
    path: tuple[str, ...]
    nbytes: int


class RunContext:
    """Hold the parts of one run. Components get it; two runs in one process never share one."""

    def __init__(
        self,
        env: Environment,
        graph: Graph,
        *,
        op_logger: OpLogger | None = None,
        data: bool = True,
        seed: int = 0,
    ) -> None:
        self.env = env
        self.graph = graph
        self.op_logger = op_logger
        self.data = data
        self.seed = seed
        self.components: dict[str, ComponentBase] = {}
        #: The distribution of each `impl`, where its class comes from a registry.
        self.providers: dict[str, Provider] = {}
        self.wires: list[Wire] = []
        self.launches: list[Launch] = []
        #: (source, destination, op, bytes, largest channel share) -> the quickest round trip, for the bound check.
        self.round_trips: dict[tuple[object, ...], RoundTrip] = {}
        #: (source, destination, bytes) -> the quickest one-way message, for the bound check.
        self.one_ways: dict[tuple[object, ...], OneWay] = {}
        self.issued = 0
        self.completed = 0
        #: memory -> payload bytes of its answered transactions, for the check that none was lost.
        self.moved_bytes: dict[str, int] = {}
        #: When the last of what was under way at the end of the run would have ended, in ns.
        self.horizon_ns = 0.0
        self._next_edge = 1
        self._chunks = lru_cache(MOST_CUT)(self._cut)
        #: What notes the use of the scratchpads, if that was asked for.
        self.tcm_recorder: TcmRecorder | None = None

    # Set by the engine for compiled graphs; hand-built graphs of tests may do without.
    store: MemoryStore
    hazards: Hazards
    memory: DeviceMemory
    on_demand: OnDemand
    queues: Queues
    resolver: AddressResolver
    router: PathRouter

    @property
    def design(self) -> Design:
        """The checked design that the graph was compiled from."""
        design: Design | None = getattr(self.graph, "design", None)
        if design is None:
            raise ConfigError("this graph was built by hand and has no design; compile it from a topology instead.")
        return design

    def reserve_edges(self, number: int) -> None:
        """Keep the edge ids 1 to `number` for the edges of the graph."""
        self._next_edge = number + 1

    def new_wire(
        self,
        name: str,
        bandwidth: float,
        latency: float,
        *,
        arrive: Callable[[Any], None],
        on_head: bool | Callable[[Any], bool],
        payload_bytes: int = 0,
        header_bytes: int = 0,
        edge_id: int | None = None,
    ) -> Wire:
        """Create a wire (bytes/ns, ns, bytes) with a reserved edge id, or else the next free one."""
        for what, value in (("bandwidth", bandwidth), ("latency", latency)):
            if not value > 0:
                raise ConfigError(f"{name}: {what} must be greater than 0, not {value!r}.")
        if edge_id is None:
            edge_id = self._next_edge
            self._next_edge += 1
        wire = Wire(
            self.env,
            edge_id,
            name,
            bandwidth,
            latency,
            arrive=arrive,
            on_head=on_head,
            payload_bytes=payload_bytes,
            header_bytes=header_bytes,
        )
        self.wires.append(wire)
        return wire

    def command_path(self, source: str, destination: str) -> tuple[str, ...]:
        """Return the node ids from `source` to `destination`, both included, as launches and answers go."""
        return self.router.find_node_path(source, destination)

    def memory_path(self, source: str, memory: str) -> tuple[str, ...]:
        """Return the node ids from `source` to a memory node, by the paths that memory traffic may take."""
        return self.router.find_memory_path(source, memory)

    def cut(self, regions: tuple[Region, ...]) -> tuple[Chunk, ...]:
        """Return the chunks of a transfer of physical `regions`; tiles are read again and again, so it remembers."""
        return self._chunks(regions)

    def _cut(self, regions: tuple[Region, ...]) -> tuple[Chunk, ...]:
        return tuple(chunks(regions, self.chunk_bytes, self.resolver.resolve))

    @property
    def chunk_bytes(self) -> int:
        """The most bytes that one memory transaction carries."""
        return self.design.chunk_bytes

    @property
    def page_bytes(self) -> int:
        """The page size in bytes."""
        return self.design.page_bytes

    def note_one_way(self, msg: MsgBase) -> None:
        """Count a message without an answer that has arrived, and keep the quickest of its like, as for round trips."""
        self.completed += 1
        elapsed, path, nbytes = msg.tail - msg.born, msg.path, msg.nbytes
        key = (path[0], path[-1], nbytes)
        entry = self.one_ways.get(key)
        if entry is None or elapsed < entry.least_ns:
            self.one_ways[key] = OneWay(elapsed, path, nbytes)

    def note_round_trip(self, transaction: Transaction) -> None:
        """Count an answered transaction and keep the quickest of its like, for comparison with its lower bound."""
        self.completed += 1
        elapsed = transaction.tail - transaction.born
        path = transaction.path
        self.moved_bytes[path[0]] = self.moved_bytes.get(path[0], 0) + transaction.moved_bytes
        # of the shares only the largest: gathers spread over channels in ever new ways, and entries must not pile up
        most = 0
        for _, nbytes in transaction.shares:
            if nbytes > most:
                most = nbytes
        key = (path[-1], path[0], transaction.op, transaction.moved_bytes, most)
        entry = self.round_trips.get(key)
        if entry is None or elapsed < entry.least_ns:
            out, op = path[::-1], transaction.op
            self.round_trips[key] = RoundTrip(elapsed, out, op, transaction.regions, transaction.total)
