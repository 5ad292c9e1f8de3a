"""Components on a fabric: built from a graph, joined, and given what they need of the session."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import pytest

from kernbench_core.component import ComponentBase
from kernbench_core.engine.hardware import Hardware
from kernbench_core.environment import Environment
from kernbench_core.errors import ComponentError, ConfigError
from kernbench_core.graph import Graph, Node
from kernbench_core.messages import MsgBase
from kernbench_core.testing import edge
from tests.core.toy_machine import Classes

NODES = [Node("a", "host", "forward", {"overhead": 1.0}), Node("b", "router", "forward", {"overhead": 1.0})]


def built(classes: Classes, **options: object) -> Hardware:
    """Return two nodes and the wire between them, built by hand."""
    hardware = Hardware(Environment(), Graph.of(NODES, [edge("a", "b")]), **options)
    hardware.build(classes)
    return hardware


def test_graph_without_a_design_can_be_built() -> None:
    """Graphs that were made by hand are wired; only programs need a design."""
    hardware = built(Classes())
    assert set(hardware.components) == {"a", "b"}
    assert list(hardware.components["a"].out_ports) == ["b"]
    assert list(hardware.components["b"].in_ports) == ["a"]


def test_port_put_delivers_from_outside_the_graph() -> None:
    """`in_ports[source].put` hands a message over as an event of the present instant."""
    hardware = built(Classes(forward=ComponentBase))
    msg = MsgBase(8, ("b", "b"))
    msg.reply = True
    msg.hop = 1
    hardware.components["b"].in_ports["a"].put(msg)
    assert not hardware.env.advance(10)
    assert hardware.components["b"].served == 1


class Counting(ComponentBase):
    """Ask, while it is made, for what it needs of the session."""

    needs: ClassVar[tuple[type, ...]] = (Counter, Environment)

    def __init__(self, node: object, fabric: object) -> None:
        super().__init__(node, fabric)  # type: ignore[arg-type]
        self.counted = self.part(Counter)


def test_a_component_is_given_what_it_needs() -> None:
    """The very object of the session, and nothing that it did not say it needs."""
    counter: Counter[str] = Counter()
    hardware = built(Classes(forward=Counting), parts={Counter: counter, Environment: Environment()})
    found = hardware.components["a"]
    assert isinstance(found, Counting)
    assert found.counted is counter
    with pytest.raises(ComponentError) as caught:
        found.part(Node)
    assert str(caught.value) == "a: Counting must say that it needs Node; add it to its needs."


def test_a_machine_without_what_a_component_needs_is_refused() -> None:
    """Before anything is made, in a sentence that names node, class and everything that is missing."""
    made: list[str] = []

    class Noting(Counting):
        def __init__(self, node: object, fabric: object) -> None:
            made.append("one")
            super().__init__(node, fabric)

    with pytest.raises(ConfigError) as caught:
        built(Classes(forward=Noting))
    assert str(caught.value) == (
        f"a must be part of a whole machine, as {__name__}.{Noting.__qualname__} needs its Counter and Environment, "
        "which this one does not have; compile it from a topology instead."
    )
    assert not made
