"""The design of a machine, a machine, which is the graph compiled from a design, and bare hardware, which has none."""

from __future__ import annotations

from attrs import field, frozen

from kernbench_core.errors import ConfigError
from kernbench_core.graph import Graph, PeSite
from kernbench_core.topology.address import AddressMap
from kernbench_core.topology.networks import ScaleUpNetwork


@frozen(repr=False)
class Design:
    """Counts, granularities in bytes, PE sites, the address map and the scale-up network of a checked specification."""

    sips: int
    cubes_per_sip: int
    pes_per_cube: int
    chunk_bytes: int
    page_bytes: int
    pes: tuple[PeSite, ...]
    address_map: AddressMap
    mesh_width: int = 1
    mesh_height: int = 1
    network: ScaleUpNetwork | None = None

    def __repr__(self) -> str:
        return f"<Design of {self.sips} SIPs x {self.cubes_per_sip} cubes x {self.pes_per_cube} PEs>"

    @property
    def hbm_slice_bytes(self) -> int:
        """Capacity of one PE's HBM slice."""
        return self.address_map.hbm_bytes

    @property
    def tcm_bytes(self) -> int:
        """Capacity of one PE's TCM."""
        return self.address_map.tcm_bytes

    @property
    def sram_bytes(self) -> int:
        """Capacity of one cube's SRAM."""
        return self.address_map.sram_bytes


@frozen(repr=False)
class Machine(Graph):
    """A graph with the design that it was compiled from; a graph that is built by hand has none."""

    design: Design = field(kw_only=True)

    def __repr__(self) -> str:
        nodes, edges = len(self.nodes), len(self.edges)
        return f"<Machine of {len(self.design.pes):,} PEs: {nodes:,} nodes and {edges:,} edges, {self.design!r}>"

    @classmethod
    def of_graph(cls, graph: Graph, design: Design) -> Machine:
        """Return the machine of a graph and its design."""
        return cls(graph.nodes, graph.edges, graph.warnings, design=design)


@frozen(repr=False)
class BareHardware(Graph):
    """The graph of a machine without PEs: hardware that no kernel runs on; `what` and `instead` as its kind says."""

    what: str = field(default="hardware on its own", kw_only=True)
    instead: str = field(default="", kw_only=True)

    @property
    def heading(self) -> str:
        """What it is, in a line."""
        return f"machine   {self.what}"


def design_of(graph: Graph) -> Design:
    """Return the design of a machine; raise ConfigError for a graph that has none."""
    return machine_of(graph).design


def machine_of(graph: Graph) -> Machine:
    """Return a graph that has a design; raise ConfigError for one that has none."""
    if isinstance(graph, Machine):
        return graph
    if isinstance(graph, BareHardware):
        instead = f"{graph.instead}, or " if graph.instead else ""
        raise ConfigError(
            f"topology must be a machine with PEs and memories for this, not {graph.what}; {instead}choose another "
            "--topology."
        )
    raise ConfigError(
        "graph must have a design for this, but it was built by hand; give it one by Machine.of_graph(graph, design)."
    )
