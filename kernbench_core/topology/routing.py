"""Paths through the machine: deterministic, found on first use, cached; nothing is computed for all pairs.

A path crosses the fewest packages, then IO chiplets, then cube borders; of those it is the one of least wire latency,
then fewest hops. What is still equal is decided by a fixed order: columns before rows, and the lane in the same half of
the mesh as the end of the path. Inside a router mesh every run of routers is then laid in dimension order, columns
before rows, wherever both legs exist (the HBM zone may cut one off). So traffic between cubes of one package stays in
the cube mesh, and no UCIe port is a short cut between routers of its own cube.

Which packages a path between two packages crosses is the network's to say (`ScaleUpNetwork.route`): on the way it goes
from link port to link port over IO chiplets, never through cubes.

Endpoints (host, processors, memories, PE units) begin and end paths and are never passed through, except that a TCM is
reached through the pe_dma of its own PE. A direct edge is a path.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from threading import RLock
from types import MappingProxyType

from kernbench_core.errors import RoutingError
from kernbench_core.graph import Edge, EdgeKind, Graph, Node
from kernbench_core.topology.design import Machine
from kernbench_core.topology.paths.mesh_order import Half, MeshOrder, Path
from kernbench_core.topology.paths.search import CostScale, PathSearch, Steps
from kernbench_core.topology.resolver import AddressResolver

ENDPOINT_KINDS = frozenset({"host", "io_cpu", "m_cpu", "hbm_ctrl", "sram"})
"""Kinds that no path passes through; neither does one pass through a unit of a PE."""

Adjacency = Mapping[str, tuple[Edge, ...]]
_RANK_OF_PACKAGE, _RANK_OF_IO_CHIPLET, _RANK_OF_CUBE = 10**8, 10**4, 1
_Edges = Mapping[str, list[Edge]]

VIEWS: Mapping[str, frozenset[EdgeKind]] = MappingProxyType(
    {
        "all": frozenset(),
        "command": frozenset({EdgeKind.PE, EdgeKind.HBM}),
        "mcpu_dma": frozenset({EdgeKind.COMMAND, EdgeKind.PE}),
        "pe_local": frozenset({EdgeKind.COMMAND, EdgeKind.PCIE, EdgeKind.IO_NOC, EdgeKind.UCIE, EdgeKind.SCALE_UP}),
    }
)
"""The four views of a graph and the edge kinds that each leaves out.

`all`: everything. `command`: how launches and completions travel. `mcpu_dma`: memory traffic, of m_cpu and pe_dma
alike. `pe_local`: what a PE reaches without leaving its cube.
"""


def is_transit(node: Node) -> bool:
    """Tell whether paths may pass through a node."""
    return node.pe is None and node.kind not in ENDPOINT_KINDS


class PathRouter:
    """Find paths in one graph. Methods return node ids from source to destination, both included.

    All of them raise RoutingError, naming both nodes, when there is no path or no such node.
    """

    @staticmethod
    def of(graph: Graph) -> PathRouter:
        """Return the router of a graph: the same for all runs on it, so that each path is found once."""
        router: PathRouter | None = graph.kept.get("routes")
        if router is None:
            router = graph.kept["routes"] = PathRouter(graph)
        return router

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._lock = RLock()
        self._wires = _Wires(graph)
        self._views: dict[str, _View] = {}
        self._paths: dict[tuple[str, str, str], Path] = {}
        self._resolver: AddressResolver | None = None

    def adjacency(self, view: str) -> Adjacency:
        """Return the outgoing edges of every node in one of `VIEWS`."""
        return self._view(view).adjacency()

    def find_path(self, src: str, dst: str) -> Path:
        """Return the path over all edges."""
        return self._find("all", src, dst)

    def find_path_with_distance(self, src: str, dst: str) -> tuple[Path, float]:
        """Return the path over all edges and the sum of its wire latencies in ns."""
        path = self.find_path(src, dst)
        edges = self._graph.edges
        return path, sum(edges[pair].latency for pair in pairwise(path))

    def find_node_path(self, src: str, dst: str) -> Path:
        """Return the path that commands, launches and completions take, which never crosses memory or PE wires."""
        return self._find("command", src, dst)

    def find_mcpu_dma_path(self, src: str, dst: str) -> Path:
        """Return the path of a memory transfer issued by the DMA of an m_cpu; it never uses command wires."""
        return self._find("mcpu_dma", src, dst)

    def find_memory_path(self, src: str, target: int | str) -> Path:
        """Return the path of a memory transfer to a physical address or memory node; it by-passes every processor."""
        return self._find("mcpu_dma", src, target if isinstance(target, str) else self._owner(target))

    def _owner(self, address: int) -> str:
        if self._resolver is None:
            self._resolver = AddressResolver(self._graph)
        return self._resolver.resolve(address)

    def _view(self, name: str) -> _View:
        view = self._views.get(name)
        if view is None:
            view = self._views[name] = _View(self._wires, VIEWS[name])
        return view

    def _find(self, view: str, src: str, dst: str) -> Path:
        path = self._paths.get((view, src, dst))
        if path is None:
            with self._lock:  # runs in several threads have one router, whose searches go on where they stopped
                path = self._paths[view, src, dst] = self._search(view, src, dst)
        return path

    def _search(self, view: str, src: str, dst: str) -> Path:
        for node in (src, dst):
            if node not in self._graph.nodes:
                raise RoutingError(f"path from {src} to {dst} must join existing nodes, but there is no node {node!r}.")
        path = (src,) if src == dst else self._view(view).path(src, dst) or self._through_dma(view, src, dst)
        if path is None:
            raise RoutingError(
                f"{dst} must be reachable from {src}, but no path joins them "
                f"(edges of the {view!r} view); check system.network and the mesh."
            )
        return path

    def _through_dma(self, view: str, src: str, dst: str) -> Path | None:
        """Reach a TCM through the pe_dma of its PE."""
        dma = f"{dst.rpartition('.')[0]}.pe_dma"
        if self._graph.nodes[dst].kind != "pe_tcm" or (dma, dst) not in self._graph.edges:
            return None
        return (*self._find(view, src, dma), dst)


class _Wires:
    """What the views of a graph have in common: edges by both ends, numbered transit nodes, meshes, costs."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        outgoing: dict[str, list[Edge]] = defaultdict(list)
        incoming: dict[str, list[Edge]] = defaultdict(list)
        for edge in graph.edges.values():
            outgoing[edge.src].append(edge)
            incoming[edge.dst].append(edge)
        self.outgoing: _Edges = outgoing
        self.incoming: _Edges = incoming
        self.transit = [node.id for node in graph.nodes.values() if is_transit(node)]
        self.number = {node: number for number, node in enumerate(self.transit)}
        self.mesh = MeshOrder(graph)
        self._scale = CostScale((edge.latency for edge in graph.edges.values()), len(graph.nodes))

    def cost(self, edge: Edge) -> int:
        """Return what it costs to go along an edge: first of all, the border that it crosses."""
        nodes = self.graph.nodes
        ends = {nodes[edge.src].kind, nodes[edge.dst].kind}
        if edge.kind is EdgeKind.SCALE_UP:
            rank = _RANK_OF_PACKAGE
        elif edge.kind is EdgeKind.UCIE and ends & {"io_ucie", "io_noc"}:
            rank = _RANK_OF_IO_CHIPLET
        else:
            rank = _RANK_OF_CUBE if "ucie" in ends else 0
        return self._scale.cost(rank, edge.latency)


class _View:
    """One adjacency view: the edges that it shows, and a search for every source that has been asked for."""

    def __init__(self, wires: _Wires, excluded: frozenset[EdgeKind]) -> None:
        graph = wires.graph
        self._wires = wires
        self._excluded = tuple(excluded)  # found by identity, where a set would hash the kind of each edge
        self._adjacency: Adjacency | None = None
        self._nodes, self._edges = graph.nodes, graph.edges
        self._mesh = wires.mesh
        self._ways: dict[Half, list[Steps | None]] = {}
        self._searches: dict[tuple[str, Half], PathSearch] = {}
        self._inside: dict[tuple[str, str, Half | None], Path | None] = {}
        linked = EdgeKind.SCALE_UP not in excluded
        self._network = graph.design.network if linked and isinstance(graph, Machine) else None

    def adjacency(self) -> Adjacency:
        """Return the outgoing edges of every node."""
        if self._adjacency is None:
            self._adjacency = MappingProxyType({node: tuple(self._outgoing(node)) for node in self._nodes})
        return self._adjacency

    def _outgoing(self, node: str) -> list[Edge]:
        return [edge for edge in self._wires.outgoing.get(node, ()) if edge.kind not in self._excluded]

    def _incoming(self, node: str) -> list[Edge]:
        return [edge for edge in self._wires.incoming.get(node, ()) if edge.kind not in self._excluded]

    def _joined(self, src: str, dst: str) -> bool:
        edge = self._edges.get((src, dst))
        return edge is not None and edge.kind not in self._excluded

    def path(self, src: str, dst: str) -> Path | None:
        """Return the path between two different nodes, or None."""
        if self._joined(src, dst):
            return (src, dst)
        incoming = self._incoming(dst)
        if not incoming:
            return None
        half = self._mesh.half(edge.src for edge in incoming) or self._mesh.half(
            edge.dst for edge in self._outgoing(src)
        )
        sip, other = self._nodes[src].sip, self._nodes[dst].sip
        if self._network is None or sip is None or other is None or sip == other:
            return self._shortest(src, dst, half)
        path: Path = (src,)
        for crossing in (*self._network.route(sip, other), (dst,)):
            if path[-1] != crossing[0]:
                inside = self._inside_package(path[-1], crossing[0], half)
                if inside is None:
                    return None
                path += inside[1:]
            path += crossing[1:]
        return path

    def _inside_package(self, src: str, dst: str, half: Half | None) -> Path | None:
        """Return the path from or to a link of a package; all paths of a PE to other packages begin or end with few."""
        key = src, dst, half
        if key not in self._inside:
            self._inside[key] = self._shortest(src, dst, half)
        return self._inside[key]

    def _shortest(self, src: str, dst: str, half: Half | None) -> Path | None:
        """Return the path of least cost, whatever packages it crosses."""
        if self._joined(src, dst):
            return (src, dst)
        wires, best, path = self._wires, None, None
        for anchor, lead in self._ends(src, self._outgoing, lambda edge: edge.dst):
            search = self._search(anchor, half or (False, False))
            for goal, trail in self._ends(dst, self._incoming, lambda edge: edge.src):
                cost = search.cost(wires.number[goal])
                if cost is None:
                    continue
                cost += sum(wires.cost(edge) for edge in (lead, trail) if edge is not None)
                if best is None or cost < best:
                    inner = tuple([wires.transit[number] for number in search.path(wires.number[goal])])
                    best = cost
                    path = (*((src,) if lead else ()), *self._mesh.dimension_ordered(inner), *((dst,) if trail else ()))
        return path

    def _ends(
        self, node: str, edges: Callable[[str], Iterable[Edge]], other: Callable[[Edge], str]
    ) -> list[tuple[str, Edge | None]]:
        """Return the transit nodes where a path from or to a node begins or ends, with the edge that leads there."""
        if node in self._wires.number:
            return [(node, None)]
        return [(other(edge), edge) for edge in edges(node) if other(edge) in self._wires.number]

    def _search(self, anchor: str, half: Half) -> PathSearch:
        search = self._searches.get((anchor, half))
        if search is None:
            wires = self._wires
            ways = self._ways.setdefault(half, [None] * len(wires.transit))

            def fill(number: int) -> Steps:
                steps = ways[number] = self._steps(wires.transit[number], half)
                return steps

            search = PathSearch(wires.number[anchor], ways, fill, len(self._edges))
            self._searches[anchor, half] = search
        return search

    def _steps(self, node: str, half: Half) -> Steps:
        """Return where a path may go from a node, in the order that decides ties, and what each step costs."""
        number = self._wires.number
        edges = [edge for edge in self._outgoing(node) if edge.dst in number]
        edges.sort(key=lambda edge: self._mesh.order(node, edge.dst, half))
        return [(number[edge.dst], self._wires.cost(edge)) for edge in edges]
