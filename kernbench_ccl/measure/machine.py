"""The machine that collectives are timed on, compiled once, with what is asked of it for every case."""

from __future__ import annotations

import math

from attrs import field, frozen

from kernbench_ccl.collectives import CollectiveKind
from kernbench_ccl.contract import Network
from kernbench_ccl.measure.bounds import Bound, RankLinks, fabric_of, lower_bound
from kernbench_ccl.measure.idealised import OVERLAY
from kernbench_ccl.network import installed_networks
from kernbench_ccl.plan import Settings, machine_network
from kernbench_core.graph import EdgeKind, Graph
from kernbench_core.kernel import UNIT
from kernbench_core.plugins import ComponentRegistry, NetworkRegistry, Plugins
from kernbench_core.runs import configure
from kernbench_core.topology import compile_topology, design_of, require_kernels
from kernbench_core.topology.naming import pe_unit

__tracebackhide__ = True


@frozen
class Setup:
    """The machine and the way of running, as texts that can be sent to another process.

    `sets` are merged last over topology, components and the overlay of `idealised`. `backend` computes the data.
    """

    topology: str = "default"
    components: str | None = None
    sets: tuple[str, ...] = ()
    idealised: bool = False
    checked: bool = True
    backend: str = "numpy"


@frozen
class TimedMachine:
    """A compiled machine, with what is asked of it for every case."""

    graph: Graph = field(repr=False)
    fabric: RankLinks = field(repr=False)
    network: Network
    networks: NetworkRegistry = field(factory=installed_networks, repr=False)
    """The shapes that may be laid over the ranks."""
    stored: int = 0
    """Bytes of the largest packet that a switch has in whole before it goes on; 0 where none waits for that."""
    slot_bytes: float = math.inf
    """Bytes of a slot of a queue, where settings say nothing: no packet has more."""

    def packet(self, settings: Settings) -> float:
        """Return the bytes of the largest packet that a switch has in whole before it goes on, of such a collective."""
        return min(self.stored, settings.slot_bytes or self.slot_bytes)

    @property
    def world(self) -> int:
        """How many ranks there are: one for each SIP."""
        return self.network.world

    @property
    def pes(self) -> int:
        """How many PEs a rank has."""
        return len(design_of(self.graph).pes) // self.world

    def vectors(self, contributors: str) -> int:
        """Return how many vectors a collective reduces or moves: one of each rank, or of each PE."""
        return len(design_of(self.graph).pes) if contributors == "pe" else self.world

    def link(self) -> tuple[float, float]:
        """Return the bandwidth (GB/s) and latency (ns) of a scale-up link: the slowest of each; zeros without links."""
        links = self.fabric.links
        if not links:
            return 0.0, 0.0
        return min(link.bandwidth for link in links), max(link.latency for link in links)

    def bound(self, kind: CollectiveKind, nbytes: int, root: int) -> Bound:
        """Return the time that no algorithm of a collective can beat; `nbytes` as nccl-tests counts it."""
        return lower_bound(kind, self.fabric, nbytes, root)


def machine_of(setup: Setup, plugins: Plugins) -> TimedMachine:
    """Compile the machine; raise ConfigError with everything that is wrong."""
    overlays = [path for path in (setup.components, OVERLAY if setup.idealised else None) if path is not None]
    config = configure(plugins, setup.topology, overlays, setup.sets)
    require_kernels(config, plugins.machines, "run a collective")
    return timed_machine(compile_topology(config, plugins), plugins)


def timed_machine(graph: Graph, plugins: Plugins) -> TimedMachine:
    """Return what is asked of a compiled machine."""
    network = machine_network(design_of(graph))
    stored, slot = _stored(graph, plugins.components), _slot_bytes(graph)
    return TimedMachine(graph, fabric_of(graph), network, plugins.networks, stored, slot)


def _slot_bytes(graph: Graph) -> float:
    """Return the bytes of a slot as the first PE says."""
    pes = design_of(graph).pes
    keeper = graph.nodes.get(pe_unit(pes[0].prefix, UNIT)) if pes else None
    return math.inf if keeper is None else keeper.params.get("slot_bytes", math.inf)


def _stored(graph: Graph, components: ComponentRegistry) -> int:
    """Return the bytes that a switch stores before it passes them on: of a packet, where one acts on last bytes."""
    ends = {end for edge in graph.edges.values() if edge.kind is EdgeKind.SCALE_UP for end in (edge.src, edge.dst)}
    switches = [graph.nodes[end] for end in ends if graph.nodes[end].sip is None]
    stores = any(node.params.get("store_and_forward") or not components.load(node.impl).ON_HEAD for node in switches)
    return design_of(graph).chunk_bytes if stores else 0
