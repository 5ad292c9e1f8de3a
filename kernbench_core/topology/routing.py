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

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from itertools import pairwise
from types import MappingProxyType

from kernbench_core.errors import RoutingError
from kernbench_core.graph import Edge, EdgeKind, Graph, Node
from kernbench_core.topology import naming
from kernbench_core.topology.design import Machine
from kernbench_core.topology.resolver import AddressResolver

ENDPOINT_KINDS = frozenset({"host", "io_cpu", "m_cpu", "hbm_ctrl", "sram"})
"""Kinds that no path passes through; neither does one pass through a unit of a PE."""

Adjacency = Mapping[str, tuple[Edge, ...]]
Path = tuple[str, ...]
_Half = tuple[bool, bool]
_Cost = tuple[int, float, int]
"""Rank of the borders that a path crosses, wire latency in ns, hops; smaller is better, left before right."""
_RANK_OF_PACKAGE, _RANK_OF_IO_CHIPLET, _RANK_OF_CUBE = 10**8, 10**4, 1

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

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._views: dict[str, _View] = {}
        self._paths: dict[tuple[str, str, str], Path] = {}
        self._resolver: AddressResolver | None = None

    def adjacency(self, view: str) -> Adjacency:
        """Return the outgoing edges of every node in one of `VIEWS`."""
        return self._view(view).outgoing

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
            view = self._views[name] = _View(self._graph, VIEWS[name])
        return view

    def _find(self, view: str, src: str, dst: str) -> Path:
        path = self._paths.get((view, src, dst))
        if path is None:
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


class _View:
    """One adjacency view: edges by both ends, and a search for every source that has been asked for."""

    def __init__(self, graph: Graph, excluded: frozenset[EdgeKind]) -> None:
        outgoing: dict[str, list[Edge]] = {node: [] for node in graph.nodes}
        incoming: dict[str, list[Edge]] = {node: [] for node in graph.nodes}
        for edge in graph.edges.values():
            if edge.kind not in excluded:
                outgoing[edge.src].append(edge)
                incoming[edge.dst].append(edge)
        self.outgoing: Adjacency = MappingProxyType({node: tuple(edges) for node, edges in outgoing.items()})
        self._incoming = incoming
        self._nodes, self._edges = graph.nodes, graph.edges
        self._transit = {node.id for node in graph.nodes.values() if is_transit(node)}
        self._mesh = _Mesh(graph)
        self._searches: dict[tuple[str, _Half], _Search] = {}
        linked = EdgeKind.SCALE_UP not in excluded
        self._network = graph.design.network if linked and isinstance(graph, Machine) else None

    def path(self, src: str, dst: str) -> Path | None:
        """Return the path between two different nodes, or None."""
        if any(edge.dst == dst for edge in self.outgoing[src]):
            return (src, dst)
        half = self._mesh.half(edge.src for edge in self._incoming[dst]) or self._mesh.half(
            edge.dst for edge in self.outgoing[src]
        )
        sip, other = self._nodes[src].sip, self._nodes[dst].sip
        if self._network is None or sip is None or other is None or sip == other:
            return self._shortest(src, dst, half)
        path: Path = (src,)
        for crossing in (*self._network.route(sip, other), (dst,)):
            if path[-1] != crossing[0]:
                inside = self._shortest(path[-1], crossing[0], half)
                if inside is None:
                    return None
                path += inside[1:]
            path += crossing[1:]
        return path

    def _shortest(self, src: str, dst: str, half: _Half | None) -> Path | None:
        """Return the path of least cost, whatever packages it crosses."""
        if (src, dst) in self._edges and any(edge.dst == dst for edge in self.outgoing[src]):
            return (src, dst)
        best: tuple[_Cost, Path] | None = None
        for anchor, lead in self._ends(src, self.outgoing[src], lambda edge: edge.dst):
            search = self._search(anchor, half or (False, False))
            for goal, trail in self._ends(dst, self._incoming[dst], lambda edge: edge.src):
                cost = search.cost(goal)
                if cost is None:
                    continue
                for edge in (lead, trail):
                    cost = _sum(cost, self._cost(edge)) if edge is not None else cost
                if best is None or cost < best[0]:
                    inner = self._mesh.dimension_ordered(search.path(goal))
                    best = (cost, ((src,) if lead else ()) + inner + ((dst,) if trail else ()))
        return None if best is None else best[1]

    def _ends(self, node: str, edges: Iterable[Edge], other: Callable[[Edge], str]) -> list[tuple[str, Edge | None]]:
        """Return the transit nodes where a path from or to a node begins or ends, with the edge that leads there."""
        if node in self._transit:
            return [(node, None)]
        return [(other(edge), edge) for edge in edges if other(edge) in self._transit]

    def _search(self, anchor: str, half: _Half) -> _Search:
        search = self._searches.get((anchor, half))
        if search is None:
            search = self._searches[anchor, half] = _Search(anchor, lambda node: self._ways(node, half))
        return search

    def _ways(self, node: str, half: _Half) -> Iterator[tuple[str, _Cost]]:
        """Yield where a path may go from a node, in the order that decides ties, and what each step costs."""
        edges = [edge for edge in self.outgoing[node] if edge.dst in self._transit]
        for edge in sorted(edges, key=lambda edge: self._mesh.order(node, edge.dst, half)):
            yield edge.dst, self._cost(edge)

    def _cost(self, edge: Edge) -> _Cost:
        ends = {self._nodes[edge.src].kind, self._nodes[edge.dst].kind}
        if edge.kind is EdgeKind.SCALE_UP:
            return _RANK_OF_PACKAGE, edge.latency, 1
        if edge.kind is EdgeKind.UCIE and ends & {"io_ucie", "io_noc"}:
            return _RANK_OF_IO_CHIPLET, edge.latency, 1
        return _RANK_OF_CUBE if "ucie" in ends else 0, edge.latency, 1


def _sum(a: _Cost, b: _Cost) -> _Cost:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


class _Mesh:
    """Where routers sit in their meshes: dimension order, and which of equal ways is taken."""

    def __init__(self, graph: Graph) -> None:
        self._edges = graph.edges
        self._cells: dict[str, tuple[str, int, int]] = {}
        self._sizes: dict[str, tuple[int, int]] = {}
        for node in graph.nodes.values():
            cell = naming.router_cell(node.id) if node.kind == "router" else None
            if cell is not None:
                mesh, row, column = cell
                self._cells[node.id] = (mesh, row, column)
                rows, columns = self._sizes.get(mesh, (0, 0))
                self._sizes[mesh] = (max(rows, row), max(columns, column))

    def half(self, nodes: Iterable[str]) -> _Half | None:
        """Return whether the first router among nodes lies in the southern and in the eastern half of its mesh."""
        for node in nodes:
            if node in self._cells:
                mesh, row, column = self._cells[node]
                return 2 * row > self._sizes[mesh][0], 2 * column > self._sizes[mesh][1]
        return None

    def order(self, node: str, neighbour: str, half: _Half) -> tuple[bool, int, int, str]:
        """Return the sort key of a step: columns before rows, and the lanes of the end's own half first.

        A port on several routers is thereby used by all of them, each for its part of the ends.
        """
        here, there = self._cells.get(node), self._cells.get(neighbour)
        if there is None:
            return False, 0, 0, neighbour
        _, row, column = there
        turns = here is not None and here[2] == column
        return turns, -row if half[0] else row, -column if half[1] else column, neighbour

    def dimension_ordered(self, path: Path) -> Path:
        """Lay every run of routers of one mesh columns first, then rows, where both legs exist."""
        result, start = list(path), 0
        while start < len(result):
            end = start
            while end + 1 < len(result) and self._same(result[start], result[end + 1]):
                end += 1
            if end - start >= 2:
                leg = self._two_legs(result[start], result[end])
                if leg is not None and len(leg) == end - start + 1:
                    result[start : end + 1] = leg
            start = end + 1
        return tuple(result)

    def _same(self, a: str, b: str) -> bool:
        first, second = self._cells.get(a), self._cells.get(b)
        return first is not None and second is not None and first[0] == second[0]

    def _two_legs(self, a: str, b: str) -> list[str] | None:
        mesh, row, column = self._cells[a]
        _, last_row, last_column = self._cells[b]
        leg = [a]
        for cell in _steps(row, column, last_row, last_column):
            router = f"{mesh}r{cell[0]}c{cell[1]}"
            if (leg[-1], router) not in self._edges:
                return None
            leg.append(router)
        return leg


def _steps(row: int, column: int, last_row: int, last_column: int) -> Iterator[tuple[int, int]]:
    while column != last_column:
        column += 1 if last_column > column else -1
        yield row, column
    while row != last_row:
        row += 1 if last_row > row else -1
        yield row, column


class _Search:
    """Dijkstra's search from one transit node, which goes only as far as it has been asked to."""

    __slots__ = ("_came_from", "_costs", "_done", "_queue", "_sequence", "_ways")

    def __init__(self, anchor: str, ways: Callable[[str], Iterable[tuple[str, _Cost]]]) -> None:
        self._ways = ways
        self._costs: dict[str, _Cost] = {anchor: (0, 0.0, 0)}
        self._came_from: dict[str, str] = {}
        self._done: set[str] = set()
        self._queue: list[tuple[_Cost, int, str]] = [((0, 0.0, 0), 0, anchor)]
        self._sequence = 0

    def cost(self, goal: str) -> _Cost | None:
        """Return what the path to a transit node costs, or None when there is none."""
        while goal not in self._done and self._queue:
            so_far, _, node = heappop(self._queue)
            if node in self._done:
                continue
            self._done.add(node)
            for neighbour, step in self._ways(node):
                cost = _sum(so_far, step)
                known = self._costs.get(neighbour)
                if known is None or cost < known:
                    self._costs[neighbour] = cost
                    self._came_from[neighbour] = node
                    self._sequence += 1
                    heappush(self._queue, (cost, self._sequence, neighbour))
        return self._costs[goal] if goal in self._done else None

    def path(self, goal: str) -> Path:
        """Return the nodes from the anchor to a goal whose cost has been asked for."""
        path = [goal]
        while path[-1] in self._came_from:
            path.append(self._came_from[path[-1]])
        return tuple(reversed(path))
