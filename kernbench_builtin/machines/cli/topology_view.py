"""Pictures of a machine in plain text: the system, one package, one cube, one PE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from kernbench_builtin.machines import naming
from kernbench_builtin.machines.cli.network_view import draw_network
from kernbench_builtin.machines.drawing.parameters import with_unit
from kernbench_core.cli.columns import GAP, wrapped
from kernbench_core.cli.columns import width as line_width
from kernbench_core.errors import UsageError
from kernbench_core.graph import Edge, EdgeKind, Graph, Node
from kernbench_core.params import Param
from kernbench_core.topology.design import BareHardware, Machine, design_of
from kernbench_core.topology.naming import cube_unit, parse, pe_prefix
from kernbench_core.units import format_bandwidth, format_bytes, format_time
from kernbench_core.wording import brief


def show(graph: Graph, view: str = "system") -> str:
    """Draw one of `VIEWS` of a compiled graph; package, cube and PE views show the first of each.

    Raises:
        UsageError: there is no such view.
    """
    draw = VIEWS.get(view)
    if draw is None:
        raise UsageError(f"view must be one of {', '.join(VIEWS)}, not {brief(view)}.")
    if not isinstance(graph, Machine) and draw is not show_system:
        what = graph.what if isinstance(graph, BareHardware) else "a graph that was built by hand"
        raise UsageError(f"view must be system for {what}, which has no packages or PEs, not {brief(view)}.")
    lines = draw(graph) if isinstance(graph, Machine) else show_bare(graph)
    if graph.warnings:
        lines += ["", "warnings", *(f"  {warning}" for warning in graph.warnings)]
    return "\n".join(line.rstrip() for line in lines)


def show_system(graph: Graph) -> list[str]:
    """Draw host, packages and scale-up links, and count nodes and edges by kind."""
    design = design_of(graph)
    lines = [
        f"machine   {_count(design.sips, 'SIP')} x {_count(design.cubes_per_sip, 'cube')} "
        f"x {_count(design.pes_per_cube, 'PE')} = {_count(len(design.pes), 'PE')}, "
        f"{format_bytes(design.hbm_slice_bytes * len(design.pes))} HBM",
        "",
        naming.HOST,
    ]
    pcie = [edge for edge in graph.edges.values() if edge.kind is EdgeKind.PCIE and edge.src == naming.HOST]
    if len(pcie) > _MOST_LISTED and len({(edge.bandwidth, edge.latency) for edge in pcie}) == 1:
        ios = len(pcie) // design.sips
        first, last = "sip0.io0", f"sip{design.sips - 1}.io{ios - 1}"
        lines.append(f"└── {len(pcie)} x PCIe {_wire(pcie[0])} ── {first} … {last}")
        pcie = []
    for index, edge in enumerate(pcie):
        branch = "└" if index == len(pcie) - 1 else "├"
        lines.append(f"{branch}── PCIe {_wire(edge)} ── {edge.dst.rpartition('.')[0]}")
    picture = draw_network(graph, design.network) if design.network is not None else []
    lines += ["", *picture] if picture else []
    kinds = Counter(node.kind for node in graph.nodes.values())
    lines += ["", f"nodes     {len(graph.nodes)}", *_columns([f"{n:>6} {kind}" for kind, n in sorted(kinds.items())])]
    lines += ["", f"edges     {len(graph.edges)}, one way each", *_edge_table(graph.edges.values())]
    return lines


def show_bare(graph: Graph) -> list[str]:
    """Describe a graph without PEs: what it is, what stands at its nodes, its wires."""
    heading = graph.heading if isinstance(graph, BareHardware) else "machine   built by hand"
    lines = [heading, "", f"nodes     {len(graph.nodes)}"]
    models = Counter((node.kind, node.impl) for node in graph.nodes.values())
    lines += [f"{count:>6} {kind:<10} {impl}" for (kind, impl), count in sorted(models.items())]
    return [*lines, "", f"edges     {len(graph.edges)}, one way each", *_edge_table(graph.edges.values())]


def show_sip(graph: Graph) -> list[str]:
    """Draw one package: its IO chiplets and its mesh of cubes."""
    design = design_of(graph)
    width, height = design.mesh_width, design.mesh_height
    label = f"{_count(design.pes_per_cube, 'PE')}, {format_bytes(design.hbm_slice_bytes * design.pes_per_cube)}"
    inner = max(len(label), len(f"cube{design.cubes_per_sip - 1}")) + 2
    chiplets = _io_chiplets(graph)
    joins = _cube_joins(graph)
    lines = [f"sip0   {_count(len(chiplets), 'IO chiplet')}, {width} x {height} cubes", ""]
    across = width * (inner + 4) - 2
    boxes = {naming.SIDES[io]: _io_box(f"io{io}", units, across) for io, units in chiplets.items()}
    lines += boxes.get("n", [])
    for row in range(height):
        cubes_of_row = [row * width + column for column in range(width)]
        lines.append("  ".join(_border("┌", "┐", inner, (cube, "n") in joins) for cube in cubes_of_row))
        for text in ("cube{}", label):
            cells = [f"│{text.format(cube):^{inner}}│" for cube in cubes_of_row]
            lines.append(_beside(cells, [(cube, "e") in joins for cube in cubes_of_row]))
        lines.append("  ".join(_border("└", "┘", inner, (cube, "s") in joins) for cube in cubes_of_row))
    for side in ("s", "w", "e"):
        lines += boxes.get(side, [])
    lines.append("")
    for io in sorted(chiplets):
        joined = [pair[1].split(".")[1] for pair in graph.edges if pair[0] == f"sip0.io{io}.io_ucie"]
        cubes = sorted((name for name in joined if name.startswith("cube")), key=lambda name: int(name[4:]))
        lines.append(f"io{io} {_SIDE_NAMES[naming.SIDES[io]]} of the mesh; its UCIe joins {', '.join(cubes)}")
    lines += ["", *_edge_table(e for e in graph.edges.values() if _within(graph, e, 0))]
    return lines


def show_cube(graph: Graph) -> list[str]:
    """Draw one cube: routers with what hangs on them, and the zone that HBM covers."""
    cells = _attachments(graph)
    rows, columns = max(row for row, _ in cells) + 1, max(column for _, column in cells) + 1
    width = max(max(map(len, texts), default=0) for texts in cells.values()) + 2
    depth = max(map(len, cells.values()))
    covered = [(row, column) for row in range(rows) for column in range(columns) if (row, column) not in cells]
    for cell in covered:
        cells[cell] = ["░" * width] * depth
    if covered:
        cells[covered[len(covered) // 2]][:] = ["░" * width, f"{' HBM ':░^{width}}", *["░" * width] * (depth - 2)]
    places = _count(len(covered), "place")
    lines = [f"sip0.cube0   {rows} x {columns} routers, {places} under HBM", ""]
    for row in range(rows):
        for line in range(depth):
            texts = [_cell_line(cells[row, column], line, width) for column in range(columns)]
            gaps = ["──" if line == 0 and _joined(graph, row, c, row, c + 1) else "  " for c in range(columns - 1)]
            lines.append("".join(text + gap for text, gap in zip(texts, [*gaps, ""], strict=True)))
        if row + 1 < rows:
            bars = ["│" if _joined(graph, row, c, row + 1, c) else " " for c in range(columns)]
            lines.append("".join(f"{bar:^{width}}  " for bar in bars))
    inside = [edge for edge in graph.edges.values() if _within(graph, edge, 0, 0, inside=True)]
    return [*lines, "", *_edge_table(inside)]


def show_pe(graph: Graph) -> list[str]:
    """List the units of one PE with their implementations, and its wires."""
    site = design_of(graph).pes[0]
    units = [node for node in graph.nodes.values() if pe_prefix(node.id) == site.prefix]
    width = max(len(node.kind) for node in units)
    design = design_of(graph)
    lines = [
        f"{site.prefix}   HBM slice {format_bytes(design.hbm_slice_bytes)} on {site.hbm_ctrl}, "
        f"TCM {format_bytes(design.tcm_bytes)}",
        "",
        "units",
        *(f"  {node.kind:<{width}}  {node.impl}" for node in units),
        "",
        "wires, both ways",
    ]
    done: set[frozenset[str]] = set()
    groups: dict[tuple[str, str], list[str]] = {}
    degree = Counter(edge.src for edge in graph.edges.values() if edge.src.startswith(f"{site.prefix}."))
    for node in sorted(units, key=lambda node: (-degree[node.id], node.id)):
        for edge in (edge for pair, edge in graph.edges.items() if pair[0] == node.id):
            if frozenset((edge.src, edge.dst)) not in done:
                done.add(frozenset((edge.src, edge.dst)))
                other = edge.dst.removeprefix(f"{site.prefix}.").removeprefix(f"sip{site.sip}.cube{site.cube}.")
                groups.setdefault((node.kind, f"{edge.kind.value} {_wire(edge)}"), []).append(other)
    for (kind, wire), others in groups.items():
        lines.append(f"  {kind:<{width}} ── {wire} ── {', '.join(others)}")
    return lines


def parameters_of_pe(graph: Graph, declared: Callable[[Node], Iterable[Param]], columns: int) -> list[str]:
    """List the parameters of the units of one PE, and of its HBM controller, with their units, in so many columns."""
    site = design_of(graph).pes[0]
    memory = () if site.hbm_ctrl is None else (graph.nodes[site.hbm_ctrl],)
    units = [node for node in graph.nodes.values() if pe_prefix(node.id) == site.prefix]
    lines = ["parameters"]
    for node in (*units, *memory):
        kinds = {param.name: param.dimension for param in declared(node)}
        told = ", ".join(f"{name} {_value(value, kinds.get(name))}" for name, value in sorted(node.params.items()))
        lines += wrapped(f"{node.kind}: {told or 'none'}", columns, "      ", "  ")
    return lines


def _value(value: Any, dimension: str | None) -> Any:
    """Return a parameter with its unit; a table as how many entries it has, which --json and components list."""
    if isinstance(value, Mapping):
        return f"({len(value)} entries)"
    return str(value).lower() if isinstance(value, bool) else with_unit(value, dimension)


VIEWS: Mapping[str, Callable[[Graph], list[str]]] = MappingProxyType(
    {"system": show_system, "sip": show_sip, "cube": show_cube, "pe": show_pe}
)
"""Every view, from the whole to its smallest part."""


_MOST_LISTED = 4
"""Up to so many PCIe links are drawn one by one."""
_SIDE_NAMES = MappingProxyType({"n": "north", "s": "south", "w": "west", "e": "east"})


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _wire(edge: Edge) -> str:
    return f"{format_bandwidth(edge.bandwidth)}, {format_time(edge.latency)}"


def _columns(items: list[str], most: int = 4) -> list[str]:
    """Put items side by side, as many as a line has room for."""
    wide = max(map(len, items)) + GAP
    number = max(1, min(most, (line_width() + GAP) // wide))
    rows = (items[at : at + number] for at in range(0, len(items), number))
    return ["".join(f"{item:<{wide}}" for item in row).rstrip() for row in rows]


def _edge_table(edges: Iterable[Edge]) -> list[str]:
    """Count edges by kind, with the range of their bandwidths and latencies."""
    by_kind: dict[EdgeKind, list[Edge]] = {}
    for edge in edges:
        by_kind.setdefault(edge.kind, []).append(edge)
    return [
        f"{len(found):>6} {kind.value:<10} {_range((edge.bandwidth for edge in found), format_bandwidth):<22} "
        f"{_range((edge.latency for edge in found), format_time)}"
        for kind, found in sorted(by_kind.items(), key=lambda item: item[0].value)
    ]


def _range(values: Iterable[float], text: Callable[[float], str]) -> str:
    found = sorted(set(values))
    return text(found[0]) if len(found) == 1 else f"{text(found[0])} to {text(found[-1])}"


def _within(graph: Graph, edge: Edge, sip: int, cube: int | None = None, *, inside: bool = False) -> bool:
    ends: list[Node] = [graph.nodes[edge.src], graph.nodes[edge.dst]]
    if inside:
        return all(node.sip == sip and node.cube == cube for node in ends)
    return all(node.sip == sip for node in ends)


def _io_box(name: str, units: list[str], across: int) -> list[str]:
    text = f"{name}: {' '.join(sorted(units))}"
    inner = max(across - 2, len(text) + 2)
    return [f"┌{'─' * inner}┐", f"│{text:^{inner}}│", f"└{'─' * inner}┘"]


def _io_chiplets(graph: Graph) -> dict[int, list[str]]:
    chiplets: dict[int, list[str]] = {}
    for node in graph.nodes.values():
        place = parse(node.id)
        if node.sip == 0 and place.io is not None:
            chiplets.setdefault(place.io, []).append(place.name)
    return chiplets


def _cube_joins(graph: Graph) -> set[tuple[int, str]]:
    """Return (cube, side) of every UCIe port of the first package that is joined to something."""
    joins: set[tuple[int, str]] = set()
    for edge in graph.edges.values():
        place = parse(edge.src)
        if edge.kind is EdgeKind.UCIE and place.sip == 0 and place.cube is not None:
            joins.add((place.cube, place.name.removeprefix("ucie_")))
    return joins


def _border(left: str, right: str, inner: int, joined: bool) -> str:
    mark = ("╨" if left == "┌" else "╥") if joined else "─"
    return left + f"{mark:─^{inner}}" + right


def _beside(cells: list[str], joined: list[bool]) -> str:
    gaps = ["══" if here else "  " for here in joined[:-1]]
    return "".join(cell + gap for cell, gap in zip(cells, [*gaps, ""], strict=True))


def _attachments(graph: Graph) -> dict[tuple[int, int], list[str]]:
    """Return what each router of the first cube shows: its name, then what hangs on it."""
    prefix = cube_unit(0, 0, "")
    hung: dict[str, list[str]] = {}
    for edge in graph.edges.values():
        if edge.src.startswith(prefix) and edge.kind in (EdgeKind.ATTACH, EdgeKind.HBM):
            hung.setdefault(edge.src, []).append(edge.dst.removeprefix(prefix).removesuffix(".pe_dma"))
    cells: dict[tuple[int, int], list[str]] = {}
    for node in graph.nodes.values():
        if node.kind == "router" and node.id.startswith(prefix):
            row, _, column = node.id.removeprefix(f"{prefix}r").partition("c")
            names = sorted(hung.get(node.id, []), key=lambda name: (not name.startswith("pe"), name))
            sides = [name.removeprefix("ucie_") for name in names if name.startswith("ucie_")]
            others = [name for name in names if not name.startswith("ucie_")]
            ports = [f"ucie {' '.join(sides)}"] if sides else []
            cells[int(row), int(column)] = [node.id.removeprefix(prefix), *others, *ports]
    return cells


def _cell_line(texts: list[str], line: int, width: int) -> str:
    return f"{texts[line] if line < len(texts) else '':^{width}}"


def _joined(graph: Graph, row: int, column: int, other_row: int, other_column: int) -> bool:
    return (naming.router(0, 0, row, column), naming.router(0, 0, other_row, other_column)) in graph.edges
