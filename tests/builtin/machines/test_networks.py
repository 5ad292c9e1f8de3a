"""The scale-up network against networkx: who is linked, the shortest way to every other package, refusals."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, product

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.errors import ConfigError
from kernbench_core.graph import EdgeKind, Graph
from kernbench_core.topology.design import design_of
from kernbench_core.topology.networks import (
    NetworkShape,
    ScaleUpLink,
    ScaleUpNetwork,
    ShapeFault,
    build_network,
    find_extent,
)
from kernbench_core.topology.routing import PathRouter
from tests.core.shapes import NETWORKS
from tests.core.small_machine import machine

SHAPES = tuple(NETWORKS)
COUNTS = tuple(range(2, 10))
SIZES = {2: (2, 1), 3: (3, 1), 4: (2, 2), 5: (5, 1), 6: (3, 2), 7: (7, 1), 8: (4, 2), 9: (3, 3), 12: (4, 3), 16: (4, 4)}


def reference(topology: str, sips: int) -> nx.Graph[int]:
    """Build the network by networkx: packages are numbered row by row."""
    if topology == "ring":
        return nx.path_graph(2) if sips == 2 else nx.cycle_graph(sips)
    if topology in ("fully_connected", "switch"):
        return nx.complete_graph(sips)
    width, height = SIZES[sips]
    wraps = (height > 2, width > 2) if topology == "torus_2d" else False
    grid = nx.grid_2d_graph(height, width, periodic=wraps)
    return nx.relabel_nodes(grid, {(row, column): row * width + column for row, column in grid})


def network(topology: str, sips: int, io_chiplets: int = 1) -> ScaleUpNetwork:
    return build_network(topology, NETWORKS[topology], find_extent(topology, NETWORKS[topology], sips), io_chiplets)


def small(topology: str, sips: int, *sets: str) -> Graph:
    return machine(
        sets=[f"system.network.topology={topology}", f"system.sips={sips}", "sip.mesh={width: 1, height: 1}", *sets]
    )


def sip_of(node: str) -> int:
    return int(node.split(".")[0].removeprefix("sip"))


@pytest.mark.parametrize("topology", [shape for shape in SHAPES if shape != "switch"])
@pytest.mark.parametrize("sips", (*COUNTS, 12, 16))
def test_links_are_those_of_the_shape(topology: str, sips: int) -> None:
    if topology in ("mesh_2d", "torus_2d") and sips not in SIZES:
        pytest.skip("no reference of this size")
    built = network(topology, sips)
    found = Counter(frozenset((link.first.sip, link.second.sip)) for link in built.links)
    assert found == Counter(frozenset(edge) for edge in reference(topology, sips).edges)
    ports = [port.id for link in built.links for port in link.ports]
    assert len(set(ports)) == len(ports), "parallel links have ports of their own"


@pytest.mark.parametrize("topology", SHAPES)
@pytest.mark.parametrize("sips", COUNTS)
def test_every_route_is_a_shortest_one(topology: str, sips: int) -> None:
    built, truth = network(topology, sips), dict(nx.all_pairs_shortest_path_length(reference(topology, sips)))
    for a, b in product(range(sips), repeat=2):
        route = built.route(a, b)
        assert len(route) == truth[a][b]
        stops = [a, *(sip_of(crossing[-1]) for crossing in route)]
        assert stops[-1] == b
        assert [sip_of(crossing[0]) for crossing in route] == stops[:-1]


ALL = tuple(product((2, 5, 6, 9), (1, 2, 3, 4)))


@pytest.mark.parametrize(
    ("sips", "io_chiplets"), ALL
)
@pytest.mark.parametrize("topology", SHAPES)
def test_a_memory_path_goes_the_route_and_through_no_cube_on_its_way(
    topology: str, sips: int, io_chiplets: int
) -> None:
    graph = small(topology, sips, f"sip.io_chiplets={io_chiplets}")
    router, built = PathRouter(graph), design_of(graph).network
    assert built is not None
    for a, b in product(range(sips), repeat=2):
        path = router.find_memory_path(f"sip{a}.cube0.pe0.pe_dma", f"sip{b}.cube0.hbm_ctrl3")
        crossings = [pair for pair in pairwise(path) if graph.edges[pair].kind is EdgeKind.SCALE_UP]
        expected = [pair for crossing in built.route(a, b) for pair in pairwise(crossing)]
        assert crossings == expected
        assert len(set(path)) == len(path)
        assert {sip_of(node) for node in path if ".cube" in node} <= {a, b}


@given(st.data())
def test_a_network_is_built_only_where_every_route_ends_and_goes_along_links(data: st.DataObject) -> None:
    """Random links and random next packages, against networkx: from everywhere the steps are links and arrive."""
    sips = data.draw(st.integers(2, 5))
    pairs = [(a, b) for a in range(sips) for b in range(a)]
    linked = data.draw(st.lists(st.sampled_from(pairs), unique=True, min_size=1))
    graph = nx.Graph(linked)
    graph.add_nodes_from(range(sips))
    following: dict[tuple[int, int], int] = {}
    for here, there in product(range(sips), repeat=2):
        right = nx.has_path(graph, here, there) and here != there and data.draw(st.integers(0, 9)) > 0
        way = nx.shortest_path(graph, here, there)[1] if right else data.draw(st.integers(0, sips - 1))
        following[here, there] = way
    links = [ScaleUpLink(a, f"to{b}", b, f"to{a}") for a, b in linked]
    shape = NetworkShape(lambda _: links, lambda _, here, there: following[here, there])
    right = True
    for there in range(sips):
        steps = nx.DiGraph((here, following[here, there]) for here in range(sips) if here != there)
        steps.add_nodes_from(range(sips))
        along = all(graph.has_edge(*step) for step in steps.edges)
        right = right and along and nx.ancestors(steps, there) == set(range(sips)) - {there}
    if not right:
        with pytest.raises(ShapeFault, match=r"^must lead "):
            build_network("x", shape, find_extent("x", shape, sips), 1)
        return
    built = build_network("x", shape, find_extent("x", shape, sips), 1)
    for here, there in product(range(sips), repeat=2):
        stops = [here, *(sip_of(crossing[-1]) for crossing in built.route(here, there))]
        assert stops[-1] == there
        assert all(following[a, there] == b for a, b in pairwise(stops))


@pytest.mark.parametrize(
    ("links", "sentence"),
    [
        (["sip0-sip1"], "must have ScaleUpLink objects as its links, not 'sip0-sip1'"),
        ([ScaleUpLink(0, "e", 3, "w")], "must link packages from 0 to 2, not 3 in "
         "ScaleUpLink(sip=0, port='e', other_sip=3, other_port='w')"),
        ([ScaleUpLink(-1, "e", None)], "must link packages from 0 to 2, not -1 in "
         "ScaleUpLink(sip=-1, port='e', other_sip=None, other_port='')"),
        ([ScaleUpLink(0, "East", 1, "w")], "must name ports in lower-case letters, digits and '_', not 'East' in "
         "ScaleUpLink(sip=0, port='East', other_sip=1, other_port='w')"),
        ([ScaleUpLink(0, "e", 1)], "must name ports in lower-case letters, digits and '_', not '' in "
         "ScaleUpLink(sip=0, port='e', other_sip=1, other_port='')"),
        ([ScaleUpLink(0, "e", 1, "w"), ScaleUpLink(1, "e", 2, "w"), ScaleUpLink(2, "w", 0, "w")],
         "must give each link of a package a port of its own, but sip2 has two 'w'"),
        ([ScaleUpLink(0, "e", 1, "w"), ScaleUpLink(1, "n", 0, "s")], "must link two packages, or a package and the "
         "switch, and once only, not as in ScaleUpLink(sip=1, port='n', other_sip=0, other_port='s')"),
        ([ScaleUpLink(1, "e", 1, "w")], "must link two packages, or a package and the switch, and once only, not as in "
         "ScaleUpLink(sip=1, port='e', other_sip=1, other_port='w')"),
    ],
)  # fmt: skip
def test_links_that_cannot_be_built_are_refused(links: list[ScaleUpLink], sentence: str) -> None:
    shape = NetworkShape(lambda _: links, lambda _, __, there: there)
    with pytest.raises(ShapeFault) as caught:
        build_network("x", shape, find_extent("x", shape, 3), 1)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("sips", [4, 6, 8, 12])
def test_both_directions_of_a_ring_carry_the_same(sips: int) -> None:
    built = network("ring", sips)
    load = Counter(crossing for a, b in product(range(sips), repeat=2) for crossing in built.route(a, b))
    ways = Counter({1: 0, sips - 1: 0})
    for (src, dst), count in load.items():
        ways[(sip_of(dst) - sip_of(src)) % sips] += count
    assert len(load) == 2 * sips
    assert ways[1] == ways[sips - 1]


def test_a_flat_network_goes_along_the_row_first() -> None:
    built = network("mesh_2d", 6)
    assert built.route(0, 5) == (
        ("sip0.io0.link_e", "sip1.io0.link_w"),
        ("sip1.io0.link_e", "sip2.io0.link_w"),
        ("sip2.io0.link_s", "sip5.io0.link_n"),
    )
    assert network("torus_2d", 9).route(0, 8) == (
        ("sip0.io0.link_w", "sip2.io0.link_e"),
        ("sip2.io0.link_n", "sip8.io0.link_s"),
    )


def test_a_switch_stands_between_every_two_packages() -> None:
    graph = small("switch", 3)
    assert graph.nodes["fabric.switch0"].kind == "switch"
    up = {src for src, dst in graph.edges if dst == "fabric.switch0"}
    assert up == {f"sip{i}.io0.link_switch0" for i in range(3)}
    path = PathRouter(graph).find_memory_path("sip0.cube0.pe0.pe_dma", "sip2.cube0.hbm_ctrl0")
    middle = path.index("fabric.switch0")
    assert path[middle - 1 : middle + 2] == ("sip0.io0.link_switch0", "fabric.switch0", "sip2.io0.link_switch0")
    assert "fabric.switch0" not in small("switch", 1).nodes


def test_links_are_dealt_to_the_io_chiplets_of_each_package() -> None:
    ports = {port.id for link in network("torus_2d", 9, 2).links for port in link.ports}
    for sip in range(9):
        assert sorted(Counter(port.split(".")[1] for port in ports if sip_of(port) == sip).values()) == [2, 2]


def test_width_and_height_may_be_given() -> None:
    found = design_of(small("mesh_2d", 6, "system.network.width=2")).network
    assert found is not None
    assert (found.extent.width, found.extent.height) == (2, 3)
    found = design_of(small("mesh_2d", 6, "system.network.height=1")).network
    assert found is not None
    assert (found.extent.width, found.extent.height) == (6, 1)
    given = small("torus_2d", 6, "system.network={width: 3, height: 2}")
    assert given.nodes.keys() == small("torus_2d", 6).nodes.keys()


@pytest.mark.parametrize(
    ("topology", "sets", "sentence"),
    [
        (
            "mesh_2d",
            "system.network.width=4",
            "system.network.width must make a full mesh_2d of 6 SIPs, not 4; leave width and height out.",
        ),
        (
            "torus_2d",
            "system.network={width: 2, height: 2}",
            "system.network.width must make a full torus_2d of 6 SIPs, not 2 x 2; leave width and height out.",
        ),
        (
            "ring",
            "system.network.height=2",
            "system.network.height must be left out, as ring has no columns and rows, not 2.",
        ),
        (
            "ring",
            "system.network.links=[{match: sip0-sip3}]",
            "system.network.links.0.match must match at least one link, not 'sip0-sip3'. Did you mean 'sip4-sip3'?",
        ),
        (
            "switch",
            "system.network.links=[{match: '*', bandwidth: 0 GB/s}]",
            "system.network.links.0.bandwidth must be a positive bandwidth, not '0 GB/s'.",
        ),
        (
            "switch",
            "system.network.latency=0 ns",
            "system.network.latency must be a positive time, not '0 ns'.",
        ),
    ],
)
def test_what_does_not_fit_is_refused(topology: str, sets: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        small(topology, 6, sets)
    assert caught.value.problems == (f"--set {sets}: {sentence}",)


def test_single_links_are_made_slower_by_pattern() -> None:
    graph = small(
        "torus_2d",
        9,
        "system.network.links=[{match: '*.link_s', latency: 700 ns}, {match: sip1-sip0, bandwidth: 5 GB/s}]",
    )
    for (src, dst), edge in graph.edges.items():
        if edge.kind is EdgeKind.SCALE_UP:
            vertical = src.endswith(("link_s", "link_n"))
            narrow = {sip_of(src), sip_of(dst)} == {0, 1}
            assert (edge.latency, edge.bandwidth) == (700 if vertical else 100, 5 if narrow else 10)
