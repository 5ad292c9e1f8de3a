"""The wires of a machine: which nodes are joined, by what kind of edge, how wide and how long."""

from __future__ import annotations

import fnmatch
import heapq
from collections.abc import Iterable, Iterator
from itertools import combinations

from attrs import define, evolve, field, frozen

from kernbench_builtin.machines import naming
from kernbench_builtin.machines.checking import PE_KINDS, Plan
from kernbench_builtin.machines.layout import Position
from kernbench_builtin.machines.specification import LinkSpec, SpanSpec, Spec
from kernbench_core.graph import Edge, EdgeKind, Graph
from kernbench_core.topology.naming import cube_unit, hbm_ctrl, pe_unit
from kernbench_core.topology.naming import pe as pe_name
from kernbench_core.units import grid_ceil

_IO_DEPTH_MM = 4.0

CONTROL_PAIRS = (("pe_dma", "pe_mmu"), ("pe_dma", "pe_ipcq"), ("pe_dma", "pe_gemm"), ("pe_dma", "pe_math"))
"""Pairs of PE units joined by control wires, beside pe_cpu and pe_scheduler, which reach every unit."""
DATA_PAIRS = (
    ("pe_tcm", "pe_dma"),
    ("pe_tcm", "pe_fetch_store"),
    ("pe_tcm", "pe_gemm"),
    ("pe_tcm", "pe_math"),
    ("pe_dma", "pe_fetch_store"),
    ("pe_fetch_store", "pe_gemm"),
    ("pe_fetch_store", "pe_math"),
    ("pe_gemm", "pe_math"),
)
"""Pairs of PE units joined by data wires."""


@frozen
class _Gauge:
    """One kind of wire with its defaults filled in."""

    kind: EdgeKind
    bandwidth: float
    latency: float
    ns_per_mm: float
    payload_bytes: int
    header_bytes: int

    @classmethod
    def of(cls, kind: EdgeKind, link: LinkSpec, spec: Spec) -> _Gauge:
        payload = spec.system.chunk_bytes if link.payload_bytes is None else link.payload_bytes
        header = spec.system.flit_bytes if link.header_bytes is None else link.header_bytes
        ns_per_mm = link.ns_per_mm if isinstance(link, SpanSpec) else 0.0
        return cls(kind, link.bandwidth, link.latency, ns_per_mm, payload, header)


@define
class _Loom:
    """Collect edges, always both ways."""

    edges: list[Edge] = field(factory=list)

    def join(self, a: str, b: str, gauge: _Gauge, mm: float = 0.0) -> None:
        latency = grid_ceil(gauge.latency + mm * gauge.ns_per_mm)
        for src, dst in ((a, b), (b, a)):
            self.edges.append(
                Edge(src, dst, gauge.kind, gauge.bandwidth, latency, gauge.payload_bytes, gauge.header_bytes)
            )


def wire(plan: Plan) -> list[Edge]:
    """Return every edge of the machine; each joins its two nodes in both directions."""
    loom, spec = _Loom(), plan.spec
    pcie = _Gauge.of(EdgeKind.PCIE, spec.host.pcie, spec)
    io_noc = _Gauge.of(EdgeKind.IO_NOC, spec.sip.noc, spec)
    cube_edges = _CubeWires(plan)
    for sip in range(plan.design.sips):
        for io in range(spec.sip.io_chiplets):
            noc = naming.io_unit(sip, io, "io_noc")
            loom.join(naming.HOST, naming.io_unit(sip, io, "pcie_ep"), pcie)
            for kind in ("pcie_ep", "io_cpu", "io_ucie"):
                loom.join(noc, naming.io_unit(sip, io, kind), io_noc)
        _wire_package(loom, plan, sip)
        for cube in range(plan.design.cubes_per_sip):
            cube_edges.weave(loom, sip, cube)
        _join_io_chiplets(loom, plan, sip)
    _wire_network(loom, plan, io_noc)
    return loom.edges


def _wire_network(loom: _Loom, plan: Plan, io_noc: _Gauge) -> None:
    """Lay the scale-up links, each with the last override that matches it, and join their ports to the IO NoCs."""
    written = plan.spec.system.network
    gauge = _Gauge.of(EdgeKind.SCALE_UP, written, plan.spec)
    for link in plan.network.links:
        own = gauge
        for override in written.links:
            if fnmatch.filter(link.names, override.match):
                bandwidth, latency = override.bandwidth or own.bandwidth, override.latency or own.latency
                own = evolve(own, bandwidth=bandwidth, latency=latency)
        loom.join(link.first.id, link.second.id, own)
        for port in link.ports:
            if port.sip is not None and port.io is not None:
                loom.join(naming.io_unit(port.sip, port.io, "io_noc"), port.id, io_noc)


def _join_io_chiplets(loom: _Loom, plan: Plan, sip: int) -> None:
    """Join the NoCs of a package's IO chiplets pairwise, where scale-up traffic may have to pass through it."""
    gauge = _Gauge.of(EdgeKind.UCIE, plan.spec.sip.ucie, plan.spec)
    ports: dict[int, None] = {port.io: None for link in plan.network.links for port in link.ports
                              if port.sip == sip and port.io is not None}  # fmt: skip
    for a, b in combinations(sorted(ports), 2):
        distance = _manhattan(io_position(plan.spec, a), io_position(plan.spec, b))
        loom.join(naming.io_unit(sip, a, "io_noc"), naming.io_unit(sip, b, "io_noc"), gauge, distance)


def _wire_package(loom: _Loom, plan: Plan, sip: int) -> None:
    """Join cubes with their neighbours, and every io_ucie with all cubes of the nearest edge of their mesh."""
    width, height = plan.design.mesh_width, plan.design.mesh_height
    ucie = _Gauge.of(EdgeKind.UCIE, plan.spec.sip.ucie, plan.spec)
    for cube in range(width * height):
        row, column = divmod(cube, width)
        if column + 1 < width:
            loom.join(naming.ucie(sip, cube, "e"), naming.ucie(sip, cube + 1, "w"), ucie)
        if row + 1 < height:
            loom.join(naming.ucie(sip, cube, "s"), naming.ucie(sip, cube + width, "n"), ucie)
    for io in range(plan.spec.sip.io_chiplets):
        start = io_position(plan.spec, io)
        for cube in edge_cubes(naming.SIDES[io], width, height):
            port = plan.layout.ucie[naming.SIDES[io]][0]
            row, column = divmod(cube, width)
            end = (column * plan.spec.cube.width + port[0], row * plan.spec.cube.height + port[1])
            port_id = naming.ucie(sip, cube, naming.SIDES[io])
            loom.join(naming.io_unit(sip, io, "io_ucie"), port_id, ucie, _manhattan(start, end))


def edge_cubes(side: str, width: int, height: int) -> Iterable[int]:
    """Return the cubes on one side of a mesh that is numbered row by row."""
    return {
        "n": range(width),
        "s": range((height - 1) * width, height * width),
        "w": range(0, height * width, width),
        "e": range(width - 1, height * width, width),
    }[side]


def io_position(spec: Spec, io: int) -> Position:
    """Return where an IO chiplet sits in its package, in mm: the first north, then south, west, east of the mesh."""
    width, height = spec.sip.mesh.width * spec.cube.width, spec.sip.mesh.height * spec.cube.height
    return {
        "n": (width / 2, -_IO_DEPTH_MM / 2),
        "s": (width / 2, height + _IO_DEPTH_MM / 2),
        "w": (-_IO_DEPTH_MM / 2, height / 2),
        "e": (width + _IO_DEPTH_MM / 2, height / 2),
    }[naming.SIDES[io]]


def _manhattan(a: Position, b: Position) -> float:
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


class _CubeWires:
    """The wires inside a cube: worked out once, woven for every cube."""

    def __init__(self, plan: Plan) -> None:
        spec = plan.spec
        self._layout, self._spec, self._plan = plan.layout, spec, plan
        self._noc = _Gauge.of(EdgeKind.NOC, spec.cube.noc, spec)
        self._attach = _Gauge.of(EdgeKind.ATTACH, spec.cube.noc, spec)
        self._sram = _Gauge.of(EdgeKind.ATTACH, spec.cube.sram.link, spec)
        self._hbm = _Gauge.of(EdgeKind.HBM, spec.cube.hbm.link, spec)
        self._dma = _Gauge.of(EdgeKind.ATTACH, spec.pe.links.dma, spec)
        self._command = _Gauge.of(EdgeKind.COMMAND, spec.cube.command, spec)
        self._control = _Gauge.of(EdgeKind.PE, spec.pe.links.control, spec)
        self._data = _Gauge.of(EdgeKind.PE, spec.pe.links.data, spec)
        self._pe_pairs = list(self._pairs())

    def weave(self, loom: _Loom, sip: int, cube: int) -> None:
        """Add the edges of one cube."""
        routers = {cell: naming.router(sip, cube, *cell) for cell in self._layout.routers}
        for (row, column), name in routers.items():
            for neighbour in ((row, column + 1), (row + 1, column)):
                if neighbour in routers:
                    loom.join(name, routers[neighbour], self._noc, self._span((row, column), neighbour))
        for side, (at, cells) in self._layout.ucie.items():
            for cell in cells:
                loom.join(naming.ucie(sip, cube, side), routers[cell], self._attach, self._reach(at, cell))
        m_cpu = cube_unit(sip, cube, "m_cpu")
        for unit, (at, cell), gauge in (
            (m_cpu, self._layout.m_cpu, self._attach),
            (cube_unit(sip, cube, "sram"), self._layout.sram, self._sram),
        ):
            loom.join(unit, routers[cell], gauge, self._reach(at, cell))
        for pe, cell in enumerate(self._layout.pes):
            prefix = pe_name(sip, cube, pe)
            loom.join(hbm_ctrl(sip, cube, pe), routers[cell], self._hbm)
            loom.join(pe_unit(prefix, "pe_dma"), routers[cell], self._dma)
            at, pe_cpu = self._layout.routers[cell], pe_unit(prefix, "pe_cpu")
            for unit in (pe_cpu, pe_unit(prefix, "pe_mmu")):
                loom.join(m_cpu, unit, self._command, _manhattan(self._layout.m_cpu[0], at))
            for a, b, gauge in self._pe_pairs:
                loom.join(f"{prefix}.{a}", f"{prefix}.{b}", gauge)

    def _span(self, a: tuple[int, int], b: tuple[int, int]) -> float:
        return _manhattan(self._layout.routers[a], self._layout.routers[b])

    def _reach(self, at: Position, cell: tuple[int, int]) -> float:
        return _manhattan(at, self._layout.routers[cell])

    def _pairs(self) -> Iterator[tuple[str, str, _Gauge]]:
        """Yield every pair of units inside a PE once."""
        units = self._spec.pe.units
        pairs = [(a, b, self._data) for a, b in DATA_PAIRS]
        pairs += [(kind, unit.attach, self._data) for kind, unit in units.items()]
        pairs += [(a, b, self._control) for a, b in CONTROL_PAIRS]
        served = [kind for kind in (*PE_KINDS, *units) if kind not in ("pe_cpu", "pe_scheduler")]
        pairs += [("pe_cpu", kind, self._control) for kind in ("pe_scheduler", *served)]
        pairs += [("pe_scheduler", kind, self._control) for kind in served]
        seen: set[frozenset[str]] = set()
        for a, b, gauge in pairs:
            if frozenset((a, b)) not in seen:
                seen.add(frozenset((a, b)))
                yield a, b, gauge


def widest_path(graph: Graph, port: str) -> float:
    """Return the width in B/ns of the widest path from a link port to any HBM controller of its own SIP."""
    sip = graph.nodes[port].sip
    outgoing: dict[str, list[Edge]] = {}
    for edge in graph.edges.values():
        if edge.kind in _ON_DIE and graph.nodes[edge.src].sip == sip:
            outgoing.setdefault(edge.src, []).append(edge)
    best: dict[str, float] = {}
    queue = [(-float("inf"), port)]
    while queue:
        width, node = heapq.heappop(queue)
        if node in best:
            continue
        best[node] = -width
        if graph.nodes[node].kind == "hbm_ctrl":
            return -width
        for edge in outgoing.get(node, ()):
            heapq.heappush(queue, (-min(-width, edge.bandwidth), edge.dst))
    return 0.0


_ON_DIE = {EdgeKind.IO_NOC, EdgeKind.UCIE, EdgeKind.NOC, EdgeKind.ATTACH, EdgeKind.HBM}
