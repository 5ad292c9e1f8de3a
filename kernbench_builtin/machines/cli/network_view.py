"""Pictures of the scale-up network: rows and columns where it has such, a line of packages, or a list of links."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from kernbench_core.graph import Edge, Graph
from kernbench_core.topology.networks import Extent, ScaleUpNetwork
from kernbench_core.units import format_bandwidth, format_time

MOST_LISTED = 4
"""Up to so many links are listed with their ports below the picture."""
MOST_DRAWN = 16
"""Of a shape that core does not draw, up to so many packages are shown."""
_PER_LINE = 8


def draw_network(graph: Graph, network: ScaleUpNetwork) -> list[str]:
    """Draw the network of a compiled graph and say what its links carry; nothing for a single package."""
    edges = [graph.edges[link.first.id, link.second.id] for link in network.links]
    if not edges:
        return []
    extent = network.extent
    shape = f"{network.topology} {extent.width} x {extent.height}" if network.shape.flat else network.topology
    wires = sorted({(edge.bandwidth, edge.latency) for edge in edges})
    alike = f"{_wire(edges[0])} each way" if len(wires) == 1 else f"{len(wires)} sorts of links"
    count = f"{len(edges)} link{'' if len(edges) == 1 else 's'}"
    draw = _DRAWINGS.get(network.topology)
    lines = [f"scale-up  {shape}, {count}, {alike}", "", *(draw(extent) if draw is not None else _draw_links(network))]
    if len(wires) > 1 or len(edges) <= MOST_LISTED:
        width = max(len(edge.src) for edge in edges)
        lines += ["", *(f"  {edge.src:<{width}} ══ {_wire(edge)} ══ {edge.dst}" for edge in edges)]
    return lines


def _wire(edge: Edge) -> str:
    return f"{format_bandwidth(edge.bandwidth)}, {format_time(edge.latency)}"


def _names(extent: Extent) -> list[str]:
    width = len(f"sip{extent.sips - 1}")
    return [f"{f'sip{sip}':^{width}}" for sip in range(extent.sips)]


def _draw_ring(extent: Extent) -> list[str]:
    return _draw_chain(extent, closed=extent.sips > 2)


def _draw_chain(extent: Extent, closed: bool) -> list[str]:
    names = _names(extent)
    rows = [names[start : start + _PER_LINE] for start in range(0, len(names), _PER_LINE)]
    lines = ["  " + " ══ ".join(row) + " ══" for row in rows]
    lines[-1] = f"{lines[-1]} {names[0].strip()}" if closed else lines[-1].removesuffix(" ══")
    return lines


def _draw_mesh(extent: Extent, closed: bool = False) -> list[str]:
    if extent.height == 1:
        return _draw_chain(extent, closed and extent.width > 2)
    names = _names(extent)
    cell = len(names[0])
    around_x, around_y = closed and extent.width > 2, closed and extent.height > 2
    left, right = ("  ═ ", " ═") if around_x else ("  ", "")
    bars = " " * len(left) + "    ".join(f"{'║':^{cell}}" for _ in range(extent.width))
    lines = [bars] if around_y else []
    for row in range(extent.height):
        if row:
            lines.append(bars)
        lines.append(left + " ══ ".join(names[extent.at(0, row) : extent.at(0, row) + extent.width]) + right)
    if around_y:
        lines.append(bars)
    if around_x or around_y:
        lines += ["", "  a line that leaves on one side comes in on the opposite one"]
    return lines


def _draw_torus(extent: Extent) -> list[str]:
    return _draw_mesh(extent, closed=True)


def _draw_full(extent: Extent) -> list[str]:
    names = _names(extent)
    if extent.sips == 2:
        return [f"  {names[0]} ══ {names[1]}"]
    rows = [names[start : start + _PER_LINE] for start in range(0, len(names), _PER_LINE)]
    return [*(f"  {'  '.join(row)}" for row in rows), "", "  each is linked with every other"]


def _draw_switch(extent: Extent) -> list[str]:
    names = _names(extent)
    cell = len(names[0])
    lines = []
    for start in range(0, len(names), _PER_LINE):
        row = names[start : start + _PER_LINE]
        last = start + _PER_LINE >= len(names)
        lines.append("  " + "  ".join(row))
        bar = "══".join(f"{'╨':═^{cell}}" for _ in row)
        lines.append("  " + bar + (" fabric.switch0" if last else ""))
    return lines


def _draw_links(network: ScaleUpNetwork) -> list[str]:
    """List for each package those that it is linked with, by number; the first packages of many."""
    peers: dict[str, list[str]] = {name: [] for name in _names(network.extent)}
    names = list(peers)
    for link in network.links:
        for end, other in (link.ends, link.ends[::-1]):
            if end.sip is not None:
                peers[names[end.sip]].append(other.id if other.sip is None else f"sip{other.sip}")
    lines = [f"  {name} ══ {', '.join(sorted(linked, key=_number))}" for name, linked in peers.items()]
    more = len(lines) - MOST_DRAWN
    return lines if more < 2 else [*lines[:MOST_DRAWN], f"  … and {more} more packages"]


def _number(name: str) -> tuple[int, str]:
    return (int(name.removeprefix("sip")), "") if name.startswith("sip") else (-1, name)


_DRAWINGS: Mapping[str, Callable[[Extent], list[str]]] = MappingProxyType(
    {
        "ring": _draw_ring,
        "mesh_2d": _draw_mesh,
        "torus_2d": _draw_torus,
        "fully_connected": _draw_full,
        "switch": _draw_switch,
    }
)
