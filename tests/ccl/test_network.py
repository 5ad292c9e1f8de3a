"""What algorithms are told of the network: its links follow from its shape, whoever brought that."""

from __future__ import annotations

from itertools import pairwise, product

import networkx as nx
import pytest

from kernbench_ccl.algorithms._forms import SHARED
from kernbench_ccl.contract import Cost
from kernbench_ccl.network import Network
from kernbench_core.topology.networks import NetworkShape, ScaleUpLink, build_network, find_extent
from tests.ccl.algorithm_cases import algorithm_named
from tests.core.shapes import NETWORKS

SIZES = {4: (2, 2), 6: (3, 2), 9: (3, 3)}


def both_ways(graph: nx.Graph[int]) -> set[tuple[int, int]]:
    return {pair for edge in graph.edges for pair in (edge, edge[::-1])}


def named(name: str, world: int) -> Network:
    return Network(name, world, *(SIZES[world] if NETWORKS[name].flat else (world, 1)))


@pytest.mark.parametrize("world", SIZES)
def test_the_links_of_the_networks_that_core_names(world: int) -> None:
    """Those of networkx's graphs; over a switch nobody is linked."""
    width, height = SIZES[world]
    for name, periodic in (("mesh_2d", (False, False)), ("torus_2d", (height > 2, width > 2))):
        grid = nx.grid_2d_graph(height, width, periodic=periodic)
        numbered = nx.relabel_nodes(grid, {(row, column): row * width + column for row, column in grid})
        assert named(name, world).linked == both_ways(numbered)
    assert named("ring", world).linked == both_ways(nx.cycle_graph(world))
    assert named("fully_connected", world).linked == both_ways(nx.complete_graph(world))
    assert named("switch", world).linked == set()
    assert [name for name in NETWORKS if named(name, world).switched] == ["switch"]


@pytest.mark.parametrize("name", ["mesh_2d", "torus_2d"])
def test_a_ring_goes_round_a_grid_by_its_links(name: str) -> None:
    """Each step is one hop of networkx's graph, wherever such a way round exists: not on odd meshes and on lines."""
    for width, height in product(range(1, 8), repeat=2):
        wraps = name == "torus_2d"
        graph = nx.grid_2d_graph(height, width, periodic=(wraps and height > 2, wraps and width > 2))
        order = Network(name, width * height, width, height).ring_order(width * height)
        assert sorted(order) == list(range(width * height)), (width, height)
        cells = [divmod(rank, width) for rank in order]
        if wraps or width * height <= 2 or (min(width, height) > 1 and not width * height % 2):
            assert len(cells) == 1 or all(graph.has_edge(*pair) for pair in pairwise([*cells, cells[0]])), cells
        else:
            assert order == tuple(range(width * height)), (width, height)


def test_a_ring_goes_by_numbers_where_these_have_links_or_nobody_knows_better() -> None:
    for name in ("ring", "fully_connected", "switch"):
        assert Network(name, 6, 6).ring_order(6) == (0, 1, 2, 3, 4, 5)
    assert Network("torus_2d", 9, 3, 3).ring_order(4) == (0, 1, 2, 3)  # a group of some of the SIPs


def machine(links: list[ScaleUpLink], world: int) -> Network:
    """Return the network of a machine whose shape nobody has named; one step leads everywhere."""
    shape = NetworkShape(lambda _: links, lambda _, __, there: there)
    built = build_network("acme.own", shape, find_extent("acme.own", shape, world), 1)
    return Network("acme.own", world, world, 1, built)


def test_the_links_of_a_machine_are_those_that_it_was_built_with() -> None:
    """Beside a switch that everyone reaches, those of two ranks alone; it is not that all go over the switch."""
    up = [ScaleUpLink(rank, "up", None) for rank in range(3)]
    assert machine(up, 3).switched
    assert machine(up, 3).linked == set()
    mixed = machine([*up, ScaleUpLink(2, "a", 0, "b")], 3)
    assert not mixed.switched
    assert mixed.linked == {(2, 0), (0, 2)}
    assert mixed.ring_order(3) == (0, 1, 2)


def test_a_link_that_no_message_takes_links_nobody() -> None:
    """Around a ring one way only, a message to the rank before goes the long way, over everybody's links."""
    links = [ScaleUpLink(rank, "e", (rank + 1) % 4, "w") for rank in range(4)]
    shape = NetworkShape(lambda _: links, lambda _, here, __: (here + 1) % 4)
    built = build_network("acme.own", shape, find_extent("acme.own", shape, 4), 1)
    network = Network("acme.own", 4, 4, 1, built)
    assert network.linked == {(0, 1), (1, 2), (2, 3), (3, 0)}
    cost = Cost(4, 1e6, 100.0, 500.0, network, pipeline=False)
    assert algorithm_named("ring_all_reduce").closed_form(cost) == 2 * 3 * (500 + 1e6 / (4 * 100))
    assert algorithm_named("ring_bidirectional_all_reduce").closed_form(cost) == SHARED


def test_the_network_of_a_machine_has_the_grid_of_its_shape() -> None:
    """Columns and rows where the shape has them, for all ranks; the most square ones elsewhere."""
    for shape, grid in ((NETWORKS["mesh_2d"], (2, 4)), (NETWORKS["ring"], (4, 2))):
        built = build_network("x", shape, find_extent("x", shape, 8, 2 if shape.flat else None), 1)
        found = Network("x", 8, built.extent.width, built.extent.height, built)
        assert found.grid(8) == grid
        assert found.grid(6) == (3, 2)


def test_two_networks_of_one_name_and_size_are_equal() -> None:
    """Whether or not one of them is a machine's: closed forms hold for both."""
    shape = NETWORKS["ring"]
    built = build_network("ring", shape, find_extent("ring", shape, 5), 1)
    assert Network("ring", 5, 5, 1, built) == Network("ring", 5, 5)
    assert Network("ring", 5, 5, 1, built).linked == Network("ring", 5, 5).linked
