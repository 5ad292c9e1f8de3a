"""A stand-alone mesh is read strictly, has the nodes and wires it says, and routes in dimension order."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.machines import naming
from kernbench_builtin.machines.cli.topology_view import show
from kernbench_core.errors import ConfigError, UsageError
from kernbench_core.graph import EdgeKind
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.topology.design import design_of
from kernbench_core.topology.routing import PathRouter
from tests.core.mesh_rig import HOPS, make_mesh, mesh_text
from tests.core.offered import offered
from tests.core.topology.text_config import parse_config


def faults(text: str, *sets: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        compile_topology(parse_config(text, "mesh.yaml", sets=sets), offered(HOPS))
    return list(caught.value.problems)


@pytest.mark.parametrize(("rows", "columns", "wrap"), [(3, 4, False), (3, 4, True), (1, 5, True), (2, 2, True)])
def test_routers_form_the_grid_that_networkx_makes(rows: int, columns: int, wrap: bool) -> None:
    graph = make_mesh(rows, columns, wrap=wrap)
    ours = nx.Graph([pair for pair, edge in graph.edges.items() if edge.kind is EdgeKind.NOC])
    reference = nx.grid_2d_graph(rows, columns)
    if wrap:  # a ring of two would need a second pair of wires between the same routers
        reference.add_edges_from(((r, 0), (r, columns - 1)) for r in range(rows) if columns > 2)
        reference.add_edges_from(((0, c), (rows - 1, c)) for c in range(columns) if rows > 2)
    named = nx.relabel_nodes(reference, {cell: naming.mesh_router(*cell) for cell in reference})
    assert sorted(map(sorted, ours.edges)) == sorted(map(sorted, named.edges))
    assert all((dst, src) in graph.edges for src, dst in graph.edges)


def test_every_router_has_an_interface_with_a_wire_each_way() -> None:
    graph = make_mesh(2, 3)
    attached = [pair for pair, edge in graph.edges.items() if edge.kind is EdgeKind.ATTACH]
    routers = [node.id for node in graph.nodes.values() if node.kind == "router"]
    assert sorted(attached) == sorted([(r, f"{r}.ni") for r in routers] + [(f"{r}.ni", r) for r in routers])
    assert {naming.mesh_cell(router) for router in routers} == {(r, c) for r in range(2) for c in range(3)}


def test_wires_carry_their_width_in_each_cycle() -> None:
    edges = make_mesh(2, 2, "mesh.interface.width=64 B", clock="2 GHz").edges
    link, entry = edges["mesh.r0c0", "mesh.r0c1"], edges["mesh.r0c0.ni", "mesh.r0c0"]
    assert (link.bandwidth, link.latency, entry.bandwidth, entry.latency) == (32.0, 1.0, 128.0, 2.0)
    assert make_mesh(2, 2).edges["mesh.r0c0.ni", "mesh.r0c0"].bandwidth == 16.0, "as wide as the links"
    assert link.header_bytes == entry.header_bytes == 0


@given(st.integers(1, 7), st.integers(2, 7), st.booleans(), st.data())
def test_routes_are_shortest_and_turn_once_from_row_to_column(
    rows: int, columns: int, wrap: bool, data: st.DataObject
) -> None:
    mesh = make_mesh(rows, columns, wrap=wrap)
    place = st.integers(0, mesh.places - 1)
    source, destination = data.draw(place), data.draw(place)
    path = mesh.route(source, destination)
    assert path[0] == naming.mesh_interface(*mesh.cell(source))
    assert path[-1] == naming.mesh_interface(*mesh.cell(destination))
    assert all(pair in mesh.edges for pair in pairwise(path))
    cells = [naming.mesh_cell(node) for node in path[1:-1]]
    shortest = nx.shortest_path_length(nx.Graph(list(mesh.edges)), path[0], path[-1])
    assert len(path) - 1 == (shortest if source != destination else 2)
    steps = ["column" if a[0] == b[0] else "row" for a, b in pairwise(cells)]
    assert steps == sorted(steps), "column changes come first"


@given(st.integers(1, 5), st.integers(2, 5), st.data())
def test_a_mesh_routes_as_the_machines_do(rows: int, columns: int, data: st.DataObject) -> None:
    mesh = make_mesh(rows, columns)
    place = st.integers(0, mesh.places - 1)
    path = mesh.route(data.draw(place), data.draw(place))
    assert path[1:-1] == PathRouter(mesh).find_path(path[1], path[-2])


def test_a_ring_of_even_length_shares_what_is_half_way_round_between_both_ways() -> None:
    mesh = make_mesh(1, 4, wrap=True)
    assert [node.removeprefix("mesh.") for node in mesh.route(3, 1)[1:-1]] == ["r0c3", "r0c2", "r0c1"]
    assert [node.removeprefix("mesh.") for node in mesh.route(2, 0)[1:-1]] == ["r0c2", "r0c3", "r0c0"]


def test_all_faults_are_told_at_once_with_their_places() -> None:
    text = mesh_text().replace("rows: 3", "rows: 0").replace("latency: 1 ns", "latency: 0 ns")
    text = text.replace("wrap: false", "warp: true").replace("overhead: 3", "overheat: 3")
    assert faults(text, "mesh.clock=12 ns") == [
        "mesh.yaml:2:3: mesh.rows must be a positive integer, not 0.",
        "--set mesh.clock=12 ns: mesh.clock must be a positive frequency, not '12 ns'. Did you mean '12 GHz'?",
        "mesh.yaml:6:23: mesh.link.latency must be a positive time, not '0 ns'.",
        "mesh.yaml:4:3: mesh.warp must be a known key. Did you mean 'wrap'?",
        "mesh.yaml:9:37: components.router.params.overheat must be a declared parameter. Did you mean 'overhead'?",
    ]


@pytest.mark.parametrize(
    ("sets", "sentence"),
    [
        (
            ["system.sips=2", "cube.pes=4"],
            "mesh.yaml:1:1: mesh must be the only machine, not beside system, cube; drop them, and a 'base' that adds "
            "them, or drop mesh.",
        ),
        (
            ["mesh.rows=100", "mesh.columns=100"],
            "--set mesh.rows=100: mesh.rows times mesh.columns must be from 2 to 4096 routers, not 10000.",
        ),
        (
            ["mesh.rows=1", "mesh.columns=1"],
            "--set mesh.rows=1: mesh.rows times mesh.columns must be from 2 to 4096 routers, not 1.",
        ),
        (["mesh.link.width=12"], "--set mesh.link.width=12: mesh.link.width must be a positive size, not 12. "
         "Did you mean '12 B'?"),
        (
            ["components.host.impl=test.hop"],
            "--set components.host.impl=test.hop: components.host must be a kind of node. Known: interface, router.",
        ),
        (
            ["overrides=[{match: 'mesh.r9*', impl: test.hop}]"],
            "--set overrides=[{match: 'mesh.r9*', impl: test.hop}]: overrides.0.match must match at least one node id, "
            "not 'mesh.r9*'. Did you mean 'mesh.r2c2'?",
        ),
    ],
)  # fmt: skip
def test_a_wrong_mesh_is_refused_in_a_sentence(sets: list[str], sentence: str) -> None:
    found = faults(mesh_text(), *sets)
    assert len(found) == 1
    assert found[0] == sentence


def test_a_mesh_without_models_says_which_are_missing() -> None:
    text = mesh_text().partition("components:")[0] + "components: {router: {impl: test.hop}}\n"
    assert faults(text) == [
        "mesh.yaml:8:1: components must name an implementation for interface; add 'interface: {impl: …}'."
    ]


def test_the_picture_says_what_there_is() -> None:
    mesh = make_mesh(2, 3, wrap=True)
    assert show(mesh).splitlines() == [
        "torus     2 x 3 routers, mesh.r0c0 to mesh.r1c2, each with a network interface",
        "",
        "nodes     12",
        "     6 interface  test.hop",
        "     6 router     test.hop",
        "",
        "edges     30, one way each",
        "    12 attach     16 GB/s                2 ns",
        "    18 noc        16 GB/s                1 ns",
    ]
    with pytest.raises(UsageError) as caught:
        show(mesh, "cube")
    assert str(caught.value) == ("view must be system for a mesh on its own, which has no packages or PEs, not 'cube'.")


def test_what_needs_a_machine_refuses_a_mesh_in_a_sentence() -> None:
    with pytest.raises(ConfigError) as caught:
        design_of(make_mesh(2, 2))
    assert str(caught.value) == (
        "topology must be a machine with PEs and memories for this, not a mesh on its own; drive it with "
        "'kernbench probe --traffic', or choose another --topology."
    )
