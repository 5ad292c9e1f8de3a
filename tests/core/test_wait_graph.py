"""The shortest cycle of waits, and where waits lead that have none."""

from __future__ import annotations

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.wait_graph import shortest_cycle, way_out


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.sampled_from("abcdefgh"), max_size=4), max_size=8))
def test_shortest_cycle_is_a_shortest_one(graph: dict[str, list[str]]) -> None:
    """The cycle exists, and networkx knows no shorter one."""
    found = shortest_cycle(graph)
    lengths = [len(cycle) for cycle in nx.simple_cycles(nx.DiGraph(graph))]
    assert len(found) == min(lengths, default=0)
    for here, following in zip(found, [*found[1:], *found[:1]], strict=True):
        assert following in graph[here]


def test_cycle_starts_at_its_smallest_name() -> None:
    """The same cycle is always shown the same way."""
    assert shortest_cycle({"c": ["a"], "b": ["c"], "a": ["b"], "z": ["a"]}) == ("a", "b", "c")
    assert shortest_cycle({"x": ["x"], "a": ["b"], "b": ["a"]}) == ("x",)
    assert shortest_cycle({"a": ["b"]}) == ()


def test_the_way_out_is_the_shortest_to_where_nothing_waits() -> None:
    """What is at the end of a chain of waits is what a person has to look at."""
    graph = {"a": ("b", "c"), "b": ("d",), "c": ("e",), "d": ("e",), "e": ()}
    assert way_out(graph, graph) == ("a", "c", "e")
    assert way_out({"e": ()}, ["e"]) == ("e",)
