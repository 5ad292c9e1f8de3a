"""The shapes of the trees that broadcasts and reductions go along, checked with networkx."""

from __future__ import annotations

from collections.abc import Callable

import networkx
import pytest

from kernbench_ccl.algorithms._tree import Tree, binomial, chain, double_binary, double_binary_from
from kernbench_ccl.measure import time_collective

SHAPES: dict[str, Callable[[int, int, int], Tree]] = {
    "chain": lambda world, root, rank: chain(range(world), root, rank),
    "chain backwards": lambda world, root, rank: chain(range(world)[::-1], root, rank),
    "binomial": binomial,
    "first": lambda world, root, rank: double_binary_from(world, root, rank, 0),
    "second": lambda world, root, rank: double_binary_from(world, root, rank, 1),
}


def graph_of(world: int, place: Callable[[int], Tree]) -> networkx.DiGraph:
    """Return the edges from parents to children, as the children see them; check that parents see the same."""
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(world))
    for rank in range(world):
        parent = place(rank).parent
        if parent is not None:
            graph.add_edge(parent, rank)
            assert rank in place(parent).children
    assert graph.number_of_edges() == sum(len(place(rank).children) for rank in range(world)) == world - 1
    assert networkx.is_arborescence(graph)
    return graph


@pytest.mark.parametrize("shape", SHAPES)
def test_every_rank_is_below_the_root(shape: str) -> None:
    """All ranks agree on one tree, whose root is asked for."""
    for world in range(2, 34):
        for root in {0, 1, world - 1}:
            graph = graph_of(world, lambda rank, world=world, root=root: SHAPES[shape](world, root, rank))
            assert graph.in_degree(root) == 0


def test_a_binomial_tree_is_as_deep_as_the_logarithm() -> None:
    """Of N, rounded up."""
    for world in range(2, 34):
        depths = networkx.shortest_path_length(graph_of(world, lambda rank, world=world: binomial(world, 0, rank)), 0)
        assert max(depths.values()) <= (world - 1).bit_length()


@pytest.mark.parametrize("world", range(2, 34))
def test_a_rank_has_children_in_one_of_two_trees_at_most(world: int) -> None:
    """So that both together use every rank's links alike; they are no deeper than the logarithm and one."""
    inner = []
    for which in (0, 1):
        graph = graph_of(world, lambda rank, which=which: double_binary(world, rank, which))
        root = next(rank for rank in range(world) if graph.in_degree(rank) == 0)
        assert max(networkx.shortest_path_length(graph, root).values()) <= world.bit_length()
        assert max(dict(graph.out_degree).values()) <= 2
        inner.append({rank for rank in range(world) if graph.out_degree(rank)})
    assert not inner[0] & inner[1]


def test_a_tree_of_an_all_reduce_knows_the_level_of_a_rank() -> None:
    """Counted from its root."""
    for world in range(2, 34):
        for which in (0, 1):
            graph = graph_of(world, lambda rank, which=which, world=world: double_binary(world, rank, which))
            root = next(rank for rank in range(world) if graph.in_degree(rank) == 0)
            levels = networkx.shortest_path_length(graph, root)
            assert levels == {rank: double_binary(world, rank, which).level for rank in range(world)}


def test_an_all_reduce_streams_through_its_trees() -> None:
    """It takes no longer than reducing and then broadcasting: no tile waits for the way up and down of another."""

    def time_of(collective: str) -> float:
        (row,) = time_collective(
            collective, [1 << 18], "tiny", algo="double_binary_tree", ranks=4, check=False,
            set=["system.network.topology=fully_connected", "system.network.latency=2000 ns", "cube.pes=2"],
        )  # fmt: skip
        return row.out_of_place.time_ns

    assert time_of("all_reduce") < time_of("reduce") + time_of("broadcast")
