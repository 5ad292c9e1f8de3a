"""Machines that are the same within a tolerance: what is another, by how much, and what stays."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from kernbench_builtin.machines.perturbation import perturbed
from kernbench_core.topology.routing import PathRouter
from tests.core.small_machine import DECLARED, machine


class Classes:
    def load(self, name: str) -> Any:
        return SimpleNamespace(PARAMS=DECLARED[name])


def test_every_latency_and_rate_is_another_one_within_the_tolerance() -> None:
    graph = machine()
    found = perturbed(graph, Classes(), "1", 0.01)
    ratios = []
    for node in graph.nodes.values():
        params = found.nodes[node.id].params
        assert params["servers"] == node.params["servers"]
        ratios.append(params["overhead"] / node.params["overhead"])
    for pair, edge in graph.edges.items():
        other = found.edges[pair]
        assert attrs.evolve(other, bandwidth=edge.bandwidth, latency=edge.latency) == edge
        ratios += [other.bandwidth / edge.bandwidth, other.latency / edge.latency]
    assert len(set(ratios)) == len(ratios)
    assert min(ratios) == pytest.approx(0.99, abs=0.001) and max(ratios) == pytest.approx(1.01, abs=0.001)
    assert sum(ratios) / len(ratios) == pytest.approx(1.0, abs=0.001)


def test_a_seed_gives_one_machine_and_leaves_the_first_as_it_was() -> None:
    graph, again = machine(), machine()
    one = perturbed(graph, Classes(), "1", 0.001)
    assert one.edges == perturbed(graph, Classes(), "1", 0.001).edges
    assert one.edges != perturbed(graph, Classes(), "2", 0.001).edges
    assert one.nodes != perturbed(graph, Classes(), "2", 0.001).nodes
    assert (graph.nodes, graph.edges) == (again.nodes, again.edges)


def test_paths_stay_those_of_the_machine() -> None:
    """Of two paths of one length the other would be the shorter one on half of the machines."""
    graph = machine()
    routes = PathRouter.of(graph)
    assert PathRouter.of(perturbed(graph, Classes(), "1", 0.001)) is routes
