"""The design of a machine: a compiled graph has one, one built by hand gets one or has none."""

from __future__ import annotations

import pytest
from attrs import evolve

from kernbench_core.errors import ConfigError
from kernbench_core.graph import Graph, Node
from kernbench_core.topology.design import Machine, design_of
from tests.core.small_machine import machine


def test_a_graph_built_by_hand_has_no_design() -> None:
    with pytest.raises(ConfigError) as caught:
        design_of(Graph.of([Node("a", "x")], []))
    assert str(caught.value) == (
        "graph must have a design for this, but it was built by hand; give it one by Machine.of_graph(graph, design)."
    )


def test_a_graph_with_a_design_is_a_machine_of_the_same_nodes_edges_and_warnings() -> None:
    compiled = machine()
    design = design_of(compiled)
    bare = evolve(Graph.of(compiled.nodes.values(), compiled.edges.values()), warnings=("too narrow",))
    made = Machine.of_graph(bare, design)
    assert design_of(made) is design
    assert (made.nodes, made.edges, made.warnings) == (compiled.nodes, compiled.edges, ("too narrow",))


def test_a_machine_with_other_edges_keeps_its_design() -> None:
    compiled = machine()
    assert design_of(evolve(compiled, edges={})) is design_of(compiled)
