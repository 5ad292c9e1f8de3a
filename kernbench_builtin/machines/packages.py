"""The machine of packages: a host, packages of cubes of PEs, and the scale-up network between them.

Its configuration has the sections `system`, `host`, `sip`, `cube` and `pe`. Kernels and host programs run on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from attrs import evolve

from kernbench_builtin.machines import naming
from kernbench_builtin.machines.checking import IO_KINDS, KINDS, Plan, check
from kernbench_builtin.machines.layout import Position
from kernbench_builtin.machines.specification import PcieSpec, Spec, UcieSpec, UnitSpec
from kernbench_builtin.machines.wiring import io_position, widest_path, wire
from kernbench_core.graph import Graph, Node
from kernbench_core.plugins import NetworkRegistry
from kernbench_core.topology.configuration import Config, KeyPath, Layering
from kernbench_core.topology.design import Machine
from kernbench_core.topology.machine_kinds import MachineKind
from kernbench_core.topology.naming import cube_unit, hbm_ctrl, pe_unit
from kernbench_core.topology.naming import pe as pe_name
from kernbench_core.topology.section_reader import read_whole
from kernbench_core.units import format_bandwidth


def read(config: Config, networks: NetworkRegistry) -> Plan:
    """Return the specification, checked as a whole, with its layout, network and design.

    Raises:
        ConfigError: one sentence for every fault.
    """
    return check(config, read_whole(config, Spec), networks)


def place(plan: Plan) -> list[Node]:
    """Return every node with its kind and its position in the package, without implementations."""
    nodes = [Node(naming.HOST, "host")]
    for sip in range(plan.design.sips):
        for io in range(plan.spec.sip.io_chiplets):
            at = io_position(plan.spec, io)
            nodes += [Node(naming.io_unit(sip, io, kind), kind, sip=sip, position=at) for kind in IO_KINDS]
        for cube in range(plan.design.cubes_per_sip):
            nodes += _place_cube(plan, sip, cube)
    for port in dict.fromkeys(end for link in plan.network.links for end in link.ends):
        where = None if port.io is None else io_position(plan.spec, port.io)
        nodes.append(Node(port.id, "switch" if port.sip is None else "link", sip=port.sip, position=where))
    return nodes


def _place_cube(plan: Plan, sip: int, cube: int) -> list[Node]:
    layout, origin = plan.layout, cube_origin(plan.spec, cube)

    def node(node_id: str, kind: str, at: Position, pe: int | None = None) -> Node:
        return Node(node_id, kind, sip=sip, cube=cube, pe=pe, position=(origin[0] + at[0], origin[1] + at[1]))

    nodes = [node(naming.router(sip, cube, *cell), "router", at) for cell, at in layout.routers.items()]
    nodes += [node(naming.ucie(sip, cube, side), "ucie", at) for side, (at, _) in layout.ucie.items()]
    nodes.append(node(cube_unit(sip, cube, "m_cpu"), "m_cpu", layout.m_cpu[0]))
    nodes.append(node(cube_unit(sip, cube, "sram"), "sram", layout.sram[0]))
    for pe, cell in enumerate(layout.pes):
        prefix, at = pe_name(sip, cube, pe), layout.routers[cell]
        nodes.append(node(hbm_ctrl(sip, cube, pe), "hbm_ctrl", at))
        nodes += [node(pe_unit(prefix, kind), kind, at, pe) for kind in plan.pe_kinds]
    return nodes


def cube_origin(spec: Spec, cube: int) -> Position:
    """Return the north-west corner of a cube in its package, in mm; cubes are numbered row by row."""
    row, column = divmod(cube, spec.sip.mesh.width)
    return column * spec.cube.width, row * spec.cube.height


def finish(graph: Graph, plan: Plan) -> Machine:
    """Return the machine of a graph; warn where it is narrower than it should be."""
    spec, warnings = plan.spec, list(graph.warnings)
    attached = min(len(cells) for _, cells in plan.layout.ucie.values())
    if attached * spec.cube.noc.bandwidth < spec.sip.ucie.bandwidth:
        warnings.append(
            f"a UCIe port should reach as many routers as its {format_bandwidth(spec.sip.ucie.bandwidth)} need, "
            f"but a side of the mesh has only {attached} of {format_bandwidth(spec.cube.noc.bandwidth)}; "
            "widen cube.noc.bandwidth or the mesh."
        )
    for port, needed in _widest_ports(plan, graph):
        found = widest_path(graph, port)
        if found < needed:
            warnings.append(
                f"scale-up link {port} of {format_bandwidth(needed)} should have an on-die path at least as wide, "
                f"but the widest to any HBM controller carries {format_bandwidth(found)}; "
                "widen sip.noc, sip.ucie, cube.noc and cube.hbm.link, or narrow system.network."
            )
    return Machine.of_graph(evolve(graph, warnings=tuple(warnings)), plan.design)


def _widest_ports(plan: Plan, graph: Graph) -> list[tuple[str, float]]:
    """Return, for each place of an IO chiplet, the first of its widest scale-up ports with its width in B/ns."""
    widest: dict[int, tuple[str, float]] = {}
    for link in plan.network.links:
        width = graph.edges[link.first.id, link.second.id].bandwidth
        for port in link.ports:
            if port.io is not None and (port.io not in widest or width > widest[port.io][1]):
                widest[port.io] = (port.id, width)
    return [widest[io] for io in sorted(widest)]


def _either_form(section: type[PcieSpec | UcieSpec]) -> Layering:
    return Layering(tuple((frozenset({form.key}), frozenset(form.others)) for form in section.FORMS))


LAYERING: Mapping[KeyPath, Layering] = MappingProxyType(
    {
        ("host", "pcie"): _either_form(PcieSpec),
        ("sip", "ucie"): _either_form(UcieSpec),
        ("system", "network"): Layering(drops_params=True),
    }
)
"""Figures of two forms, and the parameters of the network, which are those of whatever shape it has."""
PACKAGES = MachineKind(
    "a machine of packages", KINDS, read, place, wire, finish=finish, runs_kernels=True,
    units=(("pe", "units"), UnitSpec), layering=LAYERING,
)  # fmt: skip
"""What a configuration describes that has the section of no other kind."""
