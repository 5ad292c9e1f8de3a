"""The machine that collectives are timed on, compiled once, with what is asked of it for every case."""

from __future__ import annotations

import math

from attrs import field, frozen

from kernbench_ccl.catalogue import Algorithm
from kernbench_ccl.collectives import CollectiveKind
from kernbench_ccl.contract import Network
from kernbench_ccl.measure.bounds import Bound, RankLinks, fabric_of, lower_bound
from kernbench_ccl.measure.idealised import OVERLAY
from kernbench_ccl.network import installed_networks
from kernbench_ccl.plan import Settings, machine_network
from kernbench_ccl.plan.queue_sizes import OwnSlots, channel_for, message_elements, own_slots
from kernbench_core.graph import EdgeKind, Graph
from kernbench_core.peers import Channel
from kernbench_core.plugins import ComponentRegistry, NetworkRegistry, Plugins
from kernbench_core.runs import configure
from kernbench_core.topology import compile_topology, design_of, require_kernels

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
    own_slots: tuple[OwnSlots, ...] = ()
    """The slots of queues into PEs, where settings say nothing: the first PE's, and each other one."""

    def packet(self, settings: Settings) -> float:
        """Return the bytes of the largest packet that a switch has in whole before it goes on, of such a collective."""
        own = self.own_slots[0].slot_bytes if self.own_slots else math.inf
        return min(self.stored, settings.slot_bytes or own)

    def message(self, settings: Settings, algorithm: Algorithm, itemsize: int) -> int:
        """Return the bytes of a full message of a collective: whole elements, as many as settings and queues let."""
        asked = Channel("", settings.slots, settings.slot_bytes, settings.tier)
        channel = channel_for(asked, self.own_slots, algorithm.queues(self.world), design_of(self.graph).tcm_bytes)
        return message_elements(settings.tile(itemsize), itemsize, channel, self.own_slots) * itemsize

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
    stored, own = _stored(graph, plugins.components), own_slots(graph, design_of(graph).pes)
    return TimedMachine(graph, fabric_of(graph), network, plugins.networks, stored, own)


def _stored(graph: Graph, components: ComponentRegistry) -> int:
    """Return the bytes that a switch stores before it passes them on: of a packet, where one acts on last bytes."""
    ends = {end for edge in graph.edges.values() if edge.kind is EdgeKind.SCALE_UP for end in (edge.src, edge.dst)}
    switches = [graph.nodes[end] for end in ends if graph.nodes[end].sip is None]
    stores = any(node.params.get("store_and_forward") or not components.load(node.impl).ON_HEAD for node in switches)
    return design_of(graph).chunk_bytes if stores else 0
