"""`--idealised`: an overlay under which only the scale-up links take time, and a check that nothing else is left.

The overlay is plain YAML (`idealised.yaml`), for `kernbench run --components` too. It knows the parameters of the
built-in models; what another plug-in's model declares is found by its dimension, and told.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from kernbench_core.graph import EdgeKind
from kernbench_core.units import DIMENSIONS, GRID_NS

if TYPE_CHECKING:
    from kernbench_core.graph import Edge, Graph, Node
    from kernbench_core.plugins import ComponentRegistry

OVERLAY = Path(str(resources.files("kernbench_ccl") / "idealised.yaml"))
"""The file that is merged over a topology."""
FAST = 1e6
"""What a bandwidth (GB/s) or a clock (GHz) on a die is at least."""


def remaining(graph: Graph, components: ComponentRegistry) -> tuple[str, ...]:
    """Say what of a machine still takes time apart from its scale-up links, each thing once; nothing when idealised."""
    found: dict[str, None] = {}
    for edge in graph.edges.values():
        found.update(dict.fromkeys(_of_edge(edge)))
    for node in graph.nodes.values():
        found.update(dict.fromkeys(_of_node(node, components)))
    return tuple(found)


def _of_edge(edge: Edge) -> Iterator[str]:
    kind = edge.kind.value
    if edge.header_bytes:
        yield f"header_bytes of {kind} wires is {edge.header_bytes} B"
    if edge.kind is EdgeKind.SCALE_UP:
        return
    if edge.latency > GRID_NS:
        yield f"latency of {kind} wires is {edge.latency:g} ns"
    if edge.bandwidth < FAST:
        yield f"bandwidth of {kind} wires is {edge.bandwidth:g} GB/s"


def _of_node(node: Node, components: ComponentRegistry) -> Iterator[str]:
    for param in components.declared(node.impl):
        value = node.params.get(param.name)
        if value is None:
            continue
        fast_enough = param.dimension not in ("bandwidth", "frequency") or value >= FAST
        if not fast_enough or (param.dimension == "time" and value > GRID_NS):
            yield f"{param.name} of {node.impl} is {DIMENSIONS[param.dimension].text(value)}"
