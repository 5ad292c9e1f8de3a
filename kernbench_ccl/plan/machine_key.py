"""What a machine is known by: all of it for a simulation, and without its number of packages for a table of times."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kernbench_core.graph import EdgeKind
from kernbench_core.topology import design_of

if TYPE_CHECKING:
    from kernbench_core.graph import Edge, Graph, Node


def machine_digest(graph: Graph) -> str:
    """Return the SHA-256 of all that a compiled machine is: nodes, wires, granularities, and its network's name."""
    design = design_of(graph)
    return _digest(
        {
            "nodes": [[node.id, *_node(node)] for node in graph.nodes.values()],
            "wires": [[edge.src, edge.dst, *_edge(edge)] for edge in graph.edges.values()],
            "design": _granularities(graph),
            "sips": design.sips,
            "network": None if design.network is None else design.network.topology,
        }
    )


def machine_key(graph: Graph) -> str:
    """Return the SHA-256 of what the packages and links of a machine are, however many of them in whatever shape."""
    inside: dict[int | None, list[list[Any]]] = {}
    links, ends = set[str](), set[str]()
    for edge in graph.edges.values():
        if edge.kind is EdgeKind.SCALE_UP:
            links.add(_text(_edge(edge)))
            ends |= {edge.src, edge.dst}
    for node in graph.nodes.values():
        if node.id not in ends:
            inside.setdefault(node.sip, []).append([_within(node.id), *_node(node)])
    for edge in graph.edges.values():
        sip = graph.nodes[edge.src].sip
        if sip == graph.nodes[edge.dst].sip and not ends & {edge.src, edge.dst}:
            inside.setdefault(sip, []).append([_within(edge.src), _within(edge.dst), *_edge(edge)])
    inside.pop(None, None)  # the host, and switches, which are ends of links
    return _digest(
        {
            "packages": sorted({_digest(parts) for parts in inside.values()}),
            "links": sorted(links),
            "ports": sorted({_text(_node(graph.nodes[end])) for end in ends}),
            "design": _granularities(graph),
        }
    )


def links_of(graph: Graph) -> frozenset[tuple[float, float]]:
    """Return the bandwidths (GB/s) and latencies (ns) of the scale-up links."""
    return frozenset((e.bandwidth, e.latency) for e in graph.edges.values() if e.kind is EdgeKind.SCALE_UP)


def _granularities(graph: Graph) -> list[Any]:
    design = design_of(graph)
    return [
        design.cubes_per_sip, design.pes_per_cube, design.mesh_width, design.chunk_bytes, design.page_bytes,
        design.hbm_slice_bytes, design.sram_bytes, design.tcm_bytes,
    ]  # fmt: skip


def _within(node_id: str) -> str:
    """Return a node's name within its package."""
    return node_id.partition(".")[2]


def _node(node: Node) -> list[Any]:
    return [node.kind, node.impl, _plain(node.params)]


def _edge(edge: Edge) -> list[Any]:
    return [edge.kind.value, edge.bandwidth, edge.latency, edge.payload_bytes, edge.header_bytes]


def _plain(value: Any) -> Any:
    """Return a parameter as JSON has it; what has no such form as Python writes it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, str | int | float | None):
        return value
    return [_plain(part) for part in value] if isinstance(value, Iterable) else repr(value)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _digest(value: Any) -> str:
    return hashlib.sha256(_text(value).encode()).hexdigest()
