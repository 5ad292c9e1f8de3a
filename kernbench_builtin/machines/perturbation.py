"""A machine that is the same within a tolerance: every latency and every rate is another by chance."""

from __future__ import annotations

import random
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar

import attrs

from kernbench_core.graph import Graph, Node
from kernbench_core.topology.routing import PathRouter

WITHIN: Final = 0.001
"""By which share every latency, bandwidth and clock of a shaken machine is higher or lower at most."""
OF_TIME: Final = ("time", "bandwidth", "frequency")
"""The dimensions of parameters of nodes that say how long something takes, and nothing of what is done."""

_Machine = TypeVar("_Machine", bound=Graph)


class Classes(Protocol):
    """Where classes of models come from."""

    def load(self, name: str) -> Any:
        """Return the class registered as `name`."""


def perturbed(graph: _Machine, classes: Classes, seed: str, within: float) -> _Machine:
    """Return a machine whose latencies, bandwidths and clocks are those of `graph` times 1 - `within` to 1 + `within`.

    Each parameter of each node and each edge has a factor of its own, drawn evenly by `seed`. Paths stay those of
    `graph`: hardware does not choose them anew for a picosecond.
    """
    chance = random.Random(seed)
    names = {impl: _names(classes, impl) for impl in sorted({node.impl for node in graph.nodes.values()})}

    def factor() -> float:
        return 1.0 + chance.uniform(-within, within)

    def other(node: Node) -> Node:
        moved = {name: node.params[name] * factor() for name in names[node.impl] if node.params.get(name)}
        return attrs.evolve(node, params=MappingProxyType({**node.params, **moved})) if moved else node

    nodes: Mapping[str, Node] = {name: other(node) for name, node in graph.nodes.items()}
    edges = {
        pair: attrs.evolve(edge, bandwidth=edge.bandwidth * factor(), latency=edge.latency * factor())
        for pair, edge in graph.edges.items()
    }
    made = attrs.evolve(graph, nodes=MappingProxyType(nodes), edges=MappingProxyType(edges))
    made.kept["routes"] = PathRouter.of(graph)
    return made


def _names(classes: Classes, impl: str) -> list[str]:
    """Return the parameters of a model that are perturbed."""
    return [param.name for param in classes.load(impl).PARAMS if param.dimension in OF_TIME]
