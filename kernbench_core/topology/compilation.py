"""Compile a configuration to a machine, in six named stages.

1. `read_spec`: the specification, typed YAML in kernbench's own units;
2. `check`: the checked design, with the layout of a cube, the scale-up links and the address map;
3. `place`: nodes with kinds and positions;
4. `wire`: edges;
5. `implement`: an implementation and resolved parameters for every node;
6. `finish`: the machine, with warnings about what is wired narrower than it should be.

A stage reports all its faults together. When the first two find any, the implementations are checked as far as that
goes without a machine, so that one reading of a file tells everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from kernbench_core.errors import ConfigError
from kernbench_core.graph import Edge, Graph, Node
from kernbench_core.registry import NetworkRegistry
from kernbench_core.topology import naming
from kernbench_core.topology.checking import IO_KINDS, KINDS, Plan, check
from kernbench_core.topology.configuration import Config
from kernbench_core.topology.design import Machine
from kernbench_core.topology.implementations import ComponentCatalogue, Implementations
from kernbench_core.topology.layout import Point
from kernbench_core.topology.mesh import compile_mesh, is_mesh
from kernbench_core.topology.specification import Choices, Spec
from kernbench_core.topology.specification_reader import read_choices, read_spec
from kernbench_core.topology.wiring import io_position, widest_path, wire
from kernbench_core.units import format_bandwidth


def compile_topology(
    config: Config | Mapping[str, Any], components: ComponentCatalogue, networks: NetworkRegistry | None = None
) -> Graph:
    """Compile a configuration to a `Machine`, or to the graph of a mesh on its own; the same input gives the same.

    Args:
        config: what `config.load_config` read; plain data is taken too, without places in messages.
        components: declares the parameters of every implementation that the configuration names.
        networks: the shapes that the scale-up network may have; default: core's own.

    Raises:
        ConfigError: one sentence for every fault.

    >>> from kernbench_core.runs import configure
    >>> plugins = kb.load_plugins()
    >>> graph = kb.compile_topology(configure(plugins, "tiny", sets=("cube.pes=2",)), plugins.components)
    >>> [node.id for node in graph.nodes.values() if node.kind == "pe_gemm"]
    ['sip0.cube0.pe0.pe_gemm', 'sip0.cube0.pe1.pe_gemm']
    """
    loaded = config if isinstance(config, Config) else Config(config, {})
    if is_mesh(loaded):
        return compile_mesh(loaded, components).graph
    try:
        plan = check(loaded, read_spec(loaded), networks or NetworkRegistry())
        if loaded.faults:
            raise ConfigError(*loaded.faults)
    except ConfigError as faults:
        chosen = Implementations(loaded, read_choices(loaded), components, KINDS)
        chosen.check_written()
        raise ConfigError(*dict.fromkeys([*loaded.faults, *faults.problems, *chosen.problems])) from None
    nodes, warnings = implement(loaded, plan, place(plan), components)
    return finish(plan, nodes, wire(plan), (*loaded.warnings, *warnings))


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

    def node(node_id: str, kind: str, at: Point, pe: int | None = None) -> Node:
        return Node(node_id, kind, sip=sip, cube=cube, pe=pe, position=(origin[0] + at[0], origin[1] + at[1]))

    nodes = [node(naming.router(sip, cube, *cell), "router", at) for cell, at in layout.routers.items()]
    nodes += [node(naming.ucie(sip, cube, side), "ucie", at) for side, (at, _) in layout.ucie.items()]
    nodes.append(node(naming.cube_unit(sip, cube, "m_cpu"), "m_cpu", layout.m_cpu[0]))
    nodes.append(node(naming.cube_unit(sip, cube, "sram"), "sram", layout.sram[0]))
    for pe, cell in enumerate(layout.pes):
        prefix, at = naming.pe(sip, cube, pe), layout.routers[cell]
        nodes.append(node(naming.hbm_ctrl(sip, cube, pe), "hbm_ctrl", at))
        nodes += [node(naming.pe_unit(prefix, kind), kind, at, pe) for kind in plan.pe_kinds]
    return nodes


def cube_origin(spec: Spec, cube: int) -> Point:
    """Return the north-west corner of a cube in its package, in mm; cubes are numbered row by row."""
    row, column = divmod(cube, spec.sip.mesh.width)
    return column * spec.cube.width, row * spec.cube.height


def implement(
    config: Config, plan: Plan, nodes: list[Node], components: ComponentCatalogue
) -> tuple[list[Node], tuple[str, ...]]:
    """Give every node its implementation and resolved parameters; also what is to be told about them.

    Raises:
        ConfigError: one sentence for every unknown implementation, parameter or pattern and every wrong value.
    """
    chosen = Implementations(config, Choices.of(plan.spec), components, KINDS)
    done: list[Node] = []
    for node in nodes:
        impl, params = chosen.of(node.kind, node.id)
        done.append(evolve(node, impl=impl, params=params))
    chosen.check(sorted(set(KINDS) - {node.kind for node in nodes}), [node.id for node in nodes])
    if chosen.problems:
        raise ConfigError(*dict.fromkeys(chosen.problems))
    return done, tuple(dict.fromkeys(chosen.warnings))


def finish(plan: Plan, nodes: list[Node], edges: list[Edge], told: tuple[str, ...] = ()) -> Machine:
    """Sort nodes and edges into the machine; warn where the machine is narrower than it should be, after `told`."""
    warnings = list(told)
    spec, graph = plan.spec, Graph.of(nodes, edges)
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
