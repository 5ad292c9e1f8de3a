"""What the components of one run share: clock, graph, wires, routes, op log. One object per run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, cast

import attrs

from kernbench_core.environment import Environment
from kernbench_core.errors import ConfigError
from kernbench_core.graph import Graph, PeSite
from kernbench_core.wire import Wire

if TYPE_CHECKING:
    from kernbench_core.graph import Node
    from kernbench_core.messages import MsgBase, Transaction
    from kernbench_core.oplog.logger import OpLogger
    from kernbench_core.reporting import PeCounter
    from kernbench_core.values.chunking import Chunk
    from kernbench_core.values.region import Region


#: Transfers whose chunks are remembered.
MOST_CUT = 1024

_Part = TypeVar("_Part")


class SharedPart:
    """What models of a plug-in have in common over one run: a model `needs` its class, and the first one makes it.

    It `needs` parts of the session itself, by their classes.
    """

    needs: ClassVar[tuple[type, ...]] = ()

    def __init__(self, fabric: Fabric) -> None:
        """Begin, with what the fabric has."""

    def close(self, channel: str) -> None:
        """Give up what is kept for the channels of this name, as soon as nothing uses it."""

    def unreceived(self) -> Iterable[str]:
        """Say, at the end of a run, what was sent and never received, a sentence each."""
        return ()


class Neighbour(Protocol):
    """What a component may ask of another one that stands on the same fabric; everything else it must send."""

    id: str
    node: Node
    out_ports: dict[str, Wire]

    def acts_on_head(self, msg: MsgBase) -> bool:
        """Say whether it acts on the first byte of a message."""

    def min_service_ns(self, msg: MsgBase) -> float:
        """Return a time in ns that its service of a message never undercuts."""


class MachineLayout(Protocol):
    """What components ask of the design of a machine: its PEs, and sizes in bytes."""

    @property
    def pes(self) -> tuple[PeSite, ...]:
        """Where each PE sits, by its index."""

    @property
    def chunk_bytes(self) -> int:
        """The most bytes that one memory transaction carries."""

    @property
    def page_bytes(self) -> int:
        """The page size in bytes."""


class Routes(Protocol):
    """Who finds the ways through a machine."""

    def find_node_path(self, source: str, destination: str) -> tuple[str, ...]:
        """Return the node ids from one to the other, both included, as launches and answers go."""

    def find_memory_path(self, source: str, memory: str) -> tuple[str, ...]:
        """Return the node ids from a node to a memory, by the paths that memory traffic may take."""


class Addresses(Protocol):
    """Who knows which node owns an address."""

    def resolve(self, address: int) -> str:
        """Return the id of the memory that holds a physical address."""

    def find_m_cpu(self, sip: int, cube: int) -> str:
        """Return the id of the m_cpu of a cube."""


@attrs.define  # frozen ones are made four times as slowly, and each way through a machine makes some
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


class Fabric:
    """Hold what all components of one run share. Two runs in one process never share one.

    `components` are the models that stand at its nodes, by node id; there are none before all have been made.

    `routes`, `addresses` and `layout` are those of the machine; a graph that was built by hand may do without. `parts`
    are what the session offers to components that say that they need it (`ComponentBase.needs`), by their class.
    ConfigError where a component asks for something that a graph built by hand has not.

    >>> from kernbench_core.testing import Rig
    >>> class Hub(kb.ComponentBase):
    ...     def connect(self):
    ...         self.away_ns = {to: self.fabric.graph.edges[self.id, to].latency for to in self.out_ports}
    >>> Rig(Hub, outputs=2, latency=1.5).under_test.away_ns
    {'in0': 1.5, 'out0': 1.5, 'out1': 1.5}
    """

    components: Mapping[str, Neighbour]
    #: The class of the wires; who looks on at them puts one of its own here, before anything is built.
    wire_type: type[Wire] = Wire

    def __init__(
        self,
        env: Environment,
        graph: Graph,
        *,
        routes: Routes | None = None,
        addresses: Addresses | None = None,
        layout: MachineLayout | None = None,
        op_logger: OpLogger | None = None,
        parts: Mapping[type, Any] = MappingProxyType({}),
    ) -> None:
        self.env = env
        self.graph = graph
        self.op_logger = op_logger
        self.parts = parts
        self._shared: dict[type, SharedPart] = {}
        self.wires: list[Wire] = []
        #: The wires that are not `fresh`.
        self.used_wires: list[Wire] = []
        #: (source, destination, op, bytes, largest channel share) -> the quickest round trip, for the bound check.
        self.round_trips: dict[tuple[object, ...], RoundTrip] = {}
        #: (source, destination, bytes) -> the quickest one-way message, for the bound check.
        self.one_ways: dict[tuple[object, ...], OneWay] = {}
        self.issued = self.completed = 0
        #: Payload bytes of messages between PEs that were sent, and those that have got to where they are received.
        self.pushed_bytes = self.landed_bytes = 0
        #: Messages that nobody waits for: payload until it is in its slot, credits until they are noted.
        self.under_way: dict[MsgBase, None] = {}
        #: memory -> payload bytes of its answered transactions, for the check that none was lost.
        self.moved_bytes: dict[str, int] = {}
        #: who asks a memory -> for what the payload bytes of its answered transactions are counted, by memory.
        self.counters: dict[str, PeCounter] = {}
        self._routes = routes
        self._addresses = addresses
        self._layout = layout
        #: The id of each component by itself: of equal texts the one that the component has.
        self.own_names: dict[str, str] = {}
        self._next_edge = len(graph.edges) + 1
        self._chunks = lru_cache(MOST_CUT)(self._cut)

    @property
    def layout(self) -> MachineLayout:
        """The PEs and sizes of the machine."""
        if self._layout is None:
            raise _by_hand("design")
        return self._layout

    @property
    def routes(self) -> Routes:
        """The ways through the machine."""
        if self._routes is None:
            raise _by_hand("routes")
        return self._routes

    @property
    def addresses(self) -> Addresses:
        """Who owns which address of the machine."""
        if self._addresses is None:
            raise _by_hand("addresses")
        return self._addresses

    def find(self, kind: type[_Part]) -> _Part | None:
        """Return what the session offers of this class, None where it has none."""
        found = self.parts.get(kind, self._shared.get(kind))
        if found is None and issubclass(kind, SharedPart):
            found = self._shared[kind] = kind(self)
        return cast("_Part | None", found)

    @property
    def shared(self) -> Iterator[SharedPart]:
        """What models have in common."""
        return iter(self._shared.values())

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
        """Create a wire (bytes/ns, ns, bytes) with the edge id of an edge of the graph, or else the next free one."""
        for what, value in (("bandwidth", bandwidth), ("latency", latency)):
            if not value > 0:
                raise ConfigError(f"{name}: {what} must be greater than 0, not {value!r}.")
        if edge_id is None:
            edge_id = self._next_edge
            self._next_edge += 1
        wire = self.wire_type(
            self.env,
            edge_id,
            name,
            bandwidth,
            latency,
            arrive=arrive,
            on_head=on_head,
            payload_bytes=payload_bytes,
            header_bytes=header_bytes,
            used=self.used_wires,
        )
        self.wires.append(wire)
        return wire

    def command_path(self, source: str, destination: str) -> tuple[str, ...]:
        """Return the node ids from `source` to `destination`, both included, as launches and answers go."""
        return self._own(self.routes.find_node_path(source, destination))

    def memory_path(self, source: str, memory: str) -> tuple[str, ...]:
        """Return the node ids from `source` to a memory node, by the paths that memory traffic may take."""
        return self._own(self.routes.find_memory_path(source, memory))

    def _own(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """Spell a path by the names that components have: the same objects are found without comparing letters."""
        own = self.own_names
        return tuple([own.get(node, node) for node in path])

    def cut(self, regions: tuple[Region, ...]) -> tuple[Chunk, ...]:
        """Return the chunks of a transfer of physical `regions`; tiles are read again and again, so it remembers."""
        return self._chunks(regions)

    def _cut(self, regions: tuple[Region, ...]) -> tuple[Chunk, ...]:
        from kernbench_core.values.chunking import chunks

        return tuple(chunks(regions, self.chunk_bytes, self.addresses.resolve))

    @property
    def chunk_bytes(self) -> int:
        """The most bytes that one memory transaction carries."""
        return self.layout.chunk_bytes

    @property
    def page_bytes(self) -> int:
        """The page size in bytes."""
        return self.layout.page_bytes

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
        path, nbytes = transaction.path, transaction.moved_bytes
        memory, asker = path[0], path[-1]
        self.moved_bytes[memory] = self.moved_bytes.get(memory, 0) + nbytes
        counter = self.counters.get(asker)
        if counter is not None and counter.work is not None:
            moved = counter.work.memories
            moved[memory] = moved.get(memory, 0) + transaction.total
        # of the shares only the largest: gathers spread over channels in ever new ways, and entries must not pile up
        most = 0
        for _, share in transaction.shares:
            if share > most:
                most = share
        key = (asker, memory, transaction.op, nbytes, most)
        entry = self.round_trips.get(key)
        if entry is None or elapsed < entry.least_ns:
            out, op = path[::-1], transaction.op
            self.round_trips[key] = RoundTrip(elapsed, out, op, transaction.regions, transaction.total)


def _by_hand(what: str) -> ConfigError:
    return ConfigError(f"this graph was built by hand and has no {what}; compile it from a topology instead.")
