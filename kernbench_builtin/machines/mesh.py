"""A mesh on its own: routers in rows and columns, each with one network interface, and nothing else.

A topology file whose root has the section `mesh` describes one, instead of a machine of packages and cubes. It is
compiled to the same kind of graph, of the models that its `components` section names, and `kernbench probe --traffic`
drives it with synthetic traffic.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated

from attrs import field, frozen

from kernbench_builtin.machines import naming
from kernbench_builtin.machines.layout import Cell
from kernbench_core.errors import ConfigError
from kernbench_core.graph import Edge, EdgeKind, Graph, Node
from kernbench_core.plugins import NetworkRegistry
from kernbench_core.topology.configuration import Config
from kernbench_core.topology.design import BareHardware
from kernbench_core.topology.machine_kinds import MachineKind
from kernbench_core.topology.section_reader import read_section
from kernbench_core.topology.sections import Count, Frequency, Latency, Quantity, Size
from kernbench_core.units import grid_ceil

KINDS = ("router", "interface")
"""Every kind of node that a stand-alone mesh has."""
MAX_NODES = 4096
"""Most places of a mesh: traffic keeps a number for each pair of them."""


@frozen
class ChannelSpec:
    """The wires between neighbouring routers: `width` bytes enter each cycle and are there `latency` later."""

    width: Annotated[Size, "Bytes that enter the wires in a cycle: a flit."]
    latency: Annotated[Latency, "Time from one end to the other."]


@frozen
class InterfaceSpec:
    """The wires between a network interface and its router, one each way; as wide as the links unless given."""

    latency: Annotated[Latency, "Time from one end to the other."]
    width: Annotated[Size | None, "Bytes that enter the wires in a cycle; default: as the links."] = None


@frozen
class MeshSpec:
    """The mesh: its size, whether its rows and columns are closed to rings, its clock and its wires."""

    rows: Annotated[Count, "Rows of routers."]
    columns: Annotated[Count, "Columns of routers."]
    clock: Annotated[Frequency, "Clock of routers and wires."]
    link: ChannelSpec
    interface: InterfaceSpec
    wrap: Annotated[bool, Quantity("bool"), "Whether rows and columns are closed to rings: a torus."] = False


@frozen
class Mesh(BareHardware):
    """A compiled stand-alone mesh. A place is the number row x columns + column, as in row-major order."""

    spec: MeshSpec = field(kw_only=True)

    @property
    def heading(self) -> str:
        """What it is and how large."""
        spec, first = self.spec, naming.mesh_router(0, 0)
        closed, last = (
            spec.wrap and max(spec.rows, spec.columns) > 2,
            naming.mesh_router(spec.rows - 1, spec.columns - 1),
        )
        return (
            f"{'torus' if closed else 'mesh':<10}{spec.rows} x {spec.columns} routers, {first} to {last}, "
            "each with a network interface"
        )

    @property
    def places(self) -> int:
        """How many routers, and interfaces, there are."""
        return self.spec.rows * self.spec.columns

    @property
    def cycle_ns(self) -> float:
        """The clock period in ns."""
        return 1.0 / self.spec.clock

    @property
    def flit_bytes(self) -> int:
        """What a link carries in one cycle."""
        return self.spec.link.width

    def cell(self, place: int) -> Cell:
        """Return row and column of a place."""
        row, column = divmod(place, self.spec.columns)
        return row, column

    def route(self, source: int, destination: int) -> tuple[str, ...]:
        """Return the node ids from one interface to another: along the row first, then along the column.

        In rings the shorter way; where both are equally long, from even rows and columns towards larger numbers,
        from odd ones towards smaller, which shares such traffic between both ways.
        """
        spec, (row, column) = self.spec, self.cell(source)
        last_row, last_column = self.cell(destination)
        path = [naming.mesh_interface(row, column)]
        path += [naming.mesh_router(row, c) for c in line(column, last_column, spec.columns, spec.wrap)]
        path += [naming.mesh_router(r, last_column) for r in line(row, last_row, spec.rows, spec.wrap)[1:]]
        path.append(naming.mesh_interface(last_row, last_column))
        return tuple(path)


def line(start: int, end: int, size: int, wrap: bool) -> tuple[int, ...]:
    """Return the numbers from `start` to `end` of a row of `size`, both included, that a packet passes."""
    distance = end - start
    if wrap:
        distance %= size
        if 2 * distance > size or (2 * distance == size and start % 2):
            distance -= size
    step = 1 if distance > 0 else -1
    return tuple((start + i * step) % size for i in range(abs(distance) + 1))


def read(config: Config, networks: NetworkRegistry) -> MeshSpec:
    """Return the section `mesh`; raise ConfigError with a sentence for every fault."""
    spec = read_section(config, "mesh", MeshSpec)
    places = spec.rows * spec.columns
    if not 2 <= places <= MAX_NODES:
        raise ConfigError(
            f"{config.at(('mesh', 'rows'))} times mesh.columns must be from 2 to {MAX_NODES} routers, not {places}."
        )
    return spec


def _cells(spec: MeshSpec) -> Iterator[Cell]:
    return ((row, column) for row in range(spec.rows) for column in range(spec.columns))


def place(spec: MeshSpec) -> Iterator[Node]:
    """Yield the routers and their interfaces."""
    for row, column in _cells(spec):
        yield Node(naming.mesh_router(row, column), "router")
        yield Node(naming.mesh_interface(row, column), "interface")


def wire(spec: MeshSpec) -> list[Edge]:
    """Return the links of neighbours and the wires of interfaces, each way; a ring of two needs no second pair."""
    width = spec.interface.width or spec.link.width
    edges: dict[tuple[str, str], Edge] = {}

    def join(a: str, b: str, kind: EdgeKind, bandwidth: float, latency: float) -> None:
        for src, dst in ((a, b), (b, a)):
            edges[src, dst] = Edge(src, dst, kind, bandwidth, grid_ceil(latency), spec.link.width, 0)

    for row, column in _cells(spec):
        router = naming.mesh_router(row, column)
        interface = naming.mesh_interface(row, column)
        join(router, interface, EdgeKind.ATTACH, width * spec.clock, spec.interface.latency)
    rows = [[naming.mesh_router(r, c) for c in range(spec.columns)] for r in range(spec.rows)]
    for routers in [*rows, *map(list, zip(*rows, strict=True))]:
        closed = [*routers, routers[0]] if spec.wrap and len(routers) > 2 else routers
        for a, b in pairwise(closed):
            join(a, b, EdgeKind.NOC, spec.link.width * spec.clock, spec.link.latency)
    return list(edges.values())


def finish(graph: Graph, spec: MeshSpec) -> Mesh:
    """Return the mesh of a graph, which synthetic traffic may be driven over."""
    return Mesh(graph.nodes, graph.edges, graph.warnings, spec=spec)


MESH = MachineKind(
    "a mesh on its own", KINDS, read, place, wire, finish=finish, instead="drive it with 'kernbench probe --traffic'",
    section=MeshSpec,
)  # fmt: skip
"""What a configuration describes that has the section `mesh`."""
