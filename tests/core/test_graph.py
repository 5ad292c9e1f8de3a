"""The graph: sorted, frozen, and refused when it is not a machine."""

from __future__ import annotations

import inspect

import attrs
import pytest

from kernbench_core.errors import ConfigError
from kernbench_core.graph import Edge, EdgeKind, Graph, Node


def edge(src: str, dst: str, bandwidth: float = 10.0, latency: float = 1.0) -> Edge:
    return Edge(src, dst, EdgeKind.NOC, bandwidth, latency)


def test_nodes_and_edges_are_sorted_by_name() -> None:
    graph = Graph.of([Node("b", "x"), Node("a", "x"), Node("c", "x")], [edge("b", "c"), edge("a", "b"), edge("b", "a")])
    assert list(graph.nodes) == ["a", "b", "c"]
    assert list(graph.edges) == [("a", "b"), ("b", "a"), ("b", "c")]


def test_every_fault_is_reported() -> None:
    with pytest.raises(ConfigError) as caught:
        Graph.of(
            [Node("a", "x"), Node("b", "x"), Node("b", "x")],
            [edge("a", "b"), edge("a", "b"), edge("a", "c"), edge("b", "a", 0.0, 0.0), edge("a", "a")],
        )
    assert caught.value.problems == (
        "node b must exist once, but it is defined twice; rename one.",
        "edge a -> b must exist once, but it is defined twice; give parallel links their own port nodes.",
        "edge a -> c must join existing nodes, but there is no node 'c'; add it or drop the edge.",
        "bandwidth of edge b -> a must be above 0 B/ns, not 0.0; give it one.",
        "latency of edge b -> a must be above 0 ns, not 0.0; give it one.",
        "edge a -> a must join two nodes, not a node to itself; drop it.",
    )


def test_framing_must_carry_something() -> None:
    with pytest.raises(ConfigError) as caught:
        Graph.of([Node("a", "x"), Node("b", "x")], [Edge("a", "b", EdgeKind.NOC, 1.0, 1.0, 0, -1)])
    assert caught.value.problems == (
        "framing of edge a -> b must be at least 1 B of payload and 0 B of header, not 0 and -1; correct it.",
    )


def test_a_graph_is_frozen() -> None:
    graph = Graph.of([Node("a", "x")], [])
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        graph.nodes = {}  # type: ignore[misc]
    with pytest.raises(TypeError):
        graph.nodes["b"] = Node("b", "x")  # type: ignore[index]


def test_every_kind_of_edge_is_documented() -> None:
    source = inspect.getsource(EdgeKind)
    assert source.count('    """') == len(EdgeKind) + 1, "one docstring for the class and one for each member"
