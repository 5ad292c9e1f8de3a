"""The graph of a machine: nodes and directed edges, as frozen data that the engine reads once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any

from attrs import field, frozen

from kernbench_core.errors import ConfigError
from kernbench_core.process.notebook import Pictured


class EdgeKind(Enum):
    """What an edge is physically; routing views and reports tell edges apart by this."""

    PCIE = "pcie"
    """host <-> pcie_ep: the PCIe link."""
    IO_NOC = "io_noc"
    """io_noc <-> pcie_ep, io_cpu, io_ucie and link ports: inside an IO chiplet."""
    UCIE = "ucie"
    """io_ucie <-> ucie port, ucie port <-> ucie port of the next cube, io_noc <-> io_noc: die to die."""
    NOC = "noc"
    """router <-> neighbouring router of the same cube."""
    ATTACH = "attach"
    """router <-> m_cpu, sram, pe_dma or ucie port."""
    HBM = "hbm"
    """router <-> hbm_ctrl."""
    COMMAND = "command"
    """m_cpu <-> pe_cpu, pe_mmu: launches, map updates and their completions; never memory traffic."""
    PE = "pe"
    """Between two units of one PE."""
    SCALE_UP = "scale_up"
    """link port <-> link port of another SIP, or <-> switch."""

    __hash__ = object.__hash__  # Enum's is Python, and every edge's kind is looked up


@frozen
class Node:
    """One component of the machine.

    `params` are resolved: ns, B/ns, bytes, mm, GHz. `sip`, `cube` and `pe` are None where they do not apply;
    `position` is (x, y) in mm inside the package, x to the east and y to the south.

    >>> node = kb.Node("sip0.cube1.pe2.pe_sfu", "pe_sfu", "acme.sfu", {"lanes": 16}, sip=0, cube=1, pe=2)
    >>> f"{node.impl} with {node.params['lanes']} lanes, for PE {node.pe} of cube {node.cube}"
    'acme.sfu with 16 lanes, for PE 2 of cube 1'
    """

    id: str
    kind: str
    impl: str = ""
    params: Mapping[str, Any] = field(factory=lambda: MappingProxyType({}))
    sip: int | None = None
    cube: int | None = None
    pe: int | None = None
    position: tuple[float, float] | None = None


@frozen
class Edge:
    """One directed wire: bandwidth in B/ns, latency in ns on the time grid (> 0), framing in bytes.

    n bytes occupy n + ceil(n / payload_bytes) * header_bytes on the wire, at least one header.
    """

    src: str
    dst: str
    kind: EdgeKind
    bandwidth: float
    latency: float
    payload_bytes: int = 4096
    header_bytes: int = 0


@frozen
class PeSite:
    """Where one PE sits and which nodes serve it; `index` counts PEs in (sip, cube, pe) order."""

    index: int
    sip: int
    cube: int
    pe: int
    prefix: str
    pe_cpu: str
    hbm_ctrl: str
    m_cpu: str
    io_cpu: str


@frozen(repr=False)
class Graph(Pictured):
    """Nodes by id and edges by (source, destination), both in sorted order; `kept` is found once for all runs."""

    nodes: Mapping[str, Node]
    edges: Mapping[tuple[str, str], Edge]
    warnings: tuple[str, ...] = ()
    kept: dict[str, Any] = field(factory=dict, init=False, eq=False)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.nodes):,} nodes and {len(self.edges):,} edges>"

    @staticmethod
    def of(nodes: Iterable[Node], edges: Iterable[Edge], warnings: Iterable[str] = ()) -> Graph:
        """Sort and check nodes and edges.

        Raises:
            ConfigError: a node id or an ordered pair occurs twice, an edge names an unknown node, or a bandwidth or
                latency is not above zero; every fault is reported.
        """
        by_id: dict[str, Node] = {}
        by_pair: dict[tuple[str, str], Edge] = {}
        problems: list[str] = []
        for node in nodes:
            if node.id in by_id:
                problems.append(f"node {node.id} must exist once, but it is defined twice; rename one.")
            by_id[node.id] = node
        for edge in edges:
            pair = (edge.src, edge.dst)
            if pair in by_pair:
                problems.append(
                    f"edge {edge.src} -> {edge.dst} must exist once, but it is defined twice; "
                    "give parallel links their own port nodes."
                )
            by_pair[pair] = edge
            problems.extend(_edge_problems(edge, by_id))
        if problems:
            raise ConfigError(*problems)
        in_order = MappingProxyType(dict(sorted(by_id.items()))), MappingProxyType(dict(sorted(by_pair.items())))
        return Graph(*in_order, tuple(warnings))


def _edge_problems(edge: Edge, nodes: Mapping[str, Node]) -> list[str]:
    right = edge.bandwidth > 0 and edge.latency > 0 and edge.payload_bytes >= 1 and edge.header_bytes >= 0
    if right and edge.src in nodes and edge.dst in nodes and edge.src != edge.dst:  # as a rule: there are thousands
        return []
    name = f"edge {edge.src} -> {edge.dst}"
    problems = [
        f"{name} must join existing nodes, but there is no node {end!r}; add it or drop the edge."
        for end in (edge.src, edge.dst)
        if end not in nodes
    ]
    if not edge.bandwidth > 0:
        problems.append(f"bandwidth of {name} must be above 0 B/ns, not {edge.bandwidth!r}; give it one.")
    if not edge.latency > 0:
        problems.append(f"latency of {name} must be above 0 ns, not {edge.latency!r}; give it one.")
    if edge.src == edge.dst:
        problems.append(f"{name} must join two nodes, not a node to itself; drop it.")
    if edge.payload_bytes < 1 or edge.header_bytes < 0:
        problems.append(
            f"framing of {name} must be at least 1 B of payload and 0 B of header, "
            f"not {edge.payload_bytes!r} and {edge.header_bytes!r}; correct it."
        )
    return problems
