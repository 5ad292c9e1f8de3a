"""The deadlock report: who waits, on what, since when; the shortest cycle; who never started."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.errors import DeadlockError
from kernbench_core.wait_graph import shortest_cycle, way_out
from tests.core.toy_machine import Classes, DeafPe, StuckPe, toy_engine

PE0, PE1 = "sip0.cube0.pe0.pe_cpu", "sip0.cube0.pe1.pe_cpu"


def kernel(tl: Any) -> None:
    """Be launched."""


def report(classes: Classes, pes: int = 2, params: Any = None) -> str:
    """Return the report of a run that cannot end."""
    with pytest.raises(DeadlockError) as caught:
        toy_engine(pes, params, classes).run(lambda rt: rt.launch(kernel))
    assert caught.value.exit_code == 4
    return str(caught.value)


def test_report_of_kernels_that_wait_for_each_other() -> None:
    """Two PEs that wait for each other: host, kernels with line and age, occupancy, the cycle."""
    params = {PE0: {"waits_for": PE1}, PE1: {"waits_for": PE0}}
    # both launches reach their PE over the router's wires; each carries 64 B over 8 B/ns to it
    assert report(Classes(pe_cpu=StuckPe), params=params) == (
        "deadlock at simulated time 70 ns: nothing is left to happen, but something still waits.\n"
        "  host waits for KernelLaunchMsg since 0 ns\n"
        "  kernels that wait:\n"
        f"    {PE0} waits at kernel.py:12 for a message, for 5 ns (2 PEs wait so)\n"
        "  components that are busy or hold messages:\n"
        f"    {PE0} (pe_cpu): serves 1, the oldest for 5 ns; 0 wait in its queue; 1 of its messages are unanswered\n"
        f"    {PE1} (pe_cpu): serves 1, the oldest for 0 ns; 0 wait in its queue; 1 of its messages are unanswered\n"
        f"  wait-for cycle: {PE0} -> {PE1} -> {PE0}"
    )


def test_report_names_pes_that_never_started() -> None:
    """A launch that a PE swallowed is told apart from kernels that wait."""
    assert report(Classes(pe_cpu=DeafPe), pes=2) == (
        "deadlock at simulated time 70 ns: nothing is left to happen, but something still waits.\n"
        "  host waits for KernelLaunchMsg since 0 ns\n"
        "  PEs that were launched but never started:\n"
        "    sip0.cube0.pe0\n"
        "    sip0.cube0.pe1\n"
        "  wait-for cycle: none; an answer was lost"
    )


def test_long_lists_are_cut() -> None:
    """A report of many PEs stays readable and says how many were left out."""
    lines = report(Classes(pe_cpu=DeafPe), pes=25).splitlines()
    assert lines[2:4] == ["  PEs that were launched but never started:", "    sip0.cube0.pe0"]
    assert lines[22:24] == ["    sip0.cube0.pe19", "    and 5 more"]


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
