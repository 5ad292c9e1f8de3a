"""The shortest cycle of waits, and where waits lead that have none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_builtin.explain.wait_graph import spell, stuck, wait_graph, way_out
from kernbench_core.host.wait_cycle import shortest_cycle


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
    graph = {"a": (("b",), ("c",)), "b": (("d",),), "c": (("e",),), "d": (("e",),), "e": ()}
    assert way_out(graph, graph) == ("a", "c", "e")
    assert way_out({"e": ()}, ["e"]) == ("e",)


Graphs = st.dictionaries(
    st.sampled_from("abcdefgh"),
    st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=3).map(tuple), max_size=3).map(tuple),
    max_size=8,
)


@settings(deadline=None)
@given(Graphs)
def test_stuck_is_what_nobody_can_free(graph: dict[str, tuple[tuple[str, ...], ...]]) -> None:
    """A node is free when of each group that it waits for one is: repeated until nothing changes, the rest is stuck."""
    waits = {node: graph.get(node, ()) for node in "abcdefgh"}
    free: set[str] = set()
    for _ in waits:
        free |= {node for node, groups in waits.items() if all(free & {*group} for group in groups)}
    found = stuck(waits)
    assert {*found} == {*waits} - free
    for node, kept_by in found.items():
        assert {*kept_by} == {other for group in waits[node] if not free & {*group} for other in group}
    assert bool(found) == bool(shortest_cycle(found))


def test_one_that_waits_for_any_is_not_kept_by_one_of_them() -> None:
    """Only all of its sources together keep it."""
    waits: dict[str, tuple[tuple[str, ...], ...]] = {"a": (("b", "c"),), "b": (("a",),), "c": ()}
    assert stuck(waits) == {}
    assert stuck({**waits, "c": (("b",),)}) == {"a": ("b", "c"), "b": ("a",), "c": ("b",)}
    assert stuck({**waits, "a": (("b",), ("c",))}) == {"a": ("b",), "b": ("a",)}


def test_a_long_chain_of_waits_is_told_whole() -> None:
    """As many PEs as a node has may wait for each other in one ring."""
    count = 2048
    sites = [SimpleNamespace(prefix=f"pe{i}", index=i) for i in range(count)]
    kernels = [SimpleNamespace(pe=i, awaits=(((i + 1) % count,),)) for i in range(count)]
    hardware, shared = SimpleNamespace(layout=SimpleNamespace(pes=sites)), SimpleNamespace(programs=[None])
    graph = wait_graph(cast("Any", hardware), cast("Any", shared), cast("Any", kernels))
    assert graph.waits == {f"pe{i}": ((f"pe{(i + 1) % count}",),) for i in range(count)}
    assert list(graph.words) == [f"pe{i}" for i in range(count)]


def test_the_middle_of_a_long_chain_is_counted() -> None:
    """All that is spelled and counted is the whole chain, however long; one node is never left out for a count."""
    for length in (1, 2, 20, 21, 22, 513):
        chain = [f"n{i}" for i in range(length)]
        told = spell(chain).split(" -> ")
        at = next((i for i, word in enumerate(told) if word.endswith(" more")), None)
        if at is None:
            assert told == chain and length <= 21
        else:
            skipped = int(told[at].split()[0])
            assert skipped > 1 and told[:at] == chain[:at] and told[at + 1 :] == chain[at + skipped :]
