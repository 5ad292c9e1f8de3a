"""Draw any machine that was compiled: from the whole down to single units, parts that are alike once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kernbench_builtin.machines.drawing.grid_layout import lay_out_grid
from kernbench_builtin.machines.drawing.loose_layout import lay_out_layers, lay_out_ring
from kernbench_builtin.machines.drawing.machine_drawing import MachineDrawing
from kernbench_builtin.machines.drawing.parameters import with_unit
from kernbench_builtin.machines.drawing.scene import (
    PartScene,
    Thing,
    cell_of,
    corners,
    kind_of,
    number_of,
    part_of,
    parts_around,
    relative_position,
    thing_in,
)
from kernbench_builtin.machines.drawing.views import View, relative
from kernbench_core.graph import Edge, Graph, Node
from kernbench_core.params import Param
from kernbench_core.topology.design import Machine

#: So many boxes fit around an ellipse and are read.
_ROUND = 18
#: Packages of a network without rows that stand beside each other.
_ABREAST = 8
ParameterSources = Callable[[Node], Mapping[str, str]]
Declarations = Callable[[Node], Iterable[Param]]


def draw_machine(
    graph: Graph, sources: ParameterSources | None = None, title: str = "", declared: Declarations | None = None
) -> MachineDrawing:
    """Draw a compiled graph: in a notebook its picture, `svg(part)` of each part.

    `sources` says who gave the parameters of a node, `declared` how its model declares them, and so their units.

    >>> from kernbench_core.runs import configure
    >>> plugins = kb.load_plugins()
    >>> graph = kb.compile_topology(configure(plugins, "tiny"), plugins)
    >>> [box.label for box in kb.draw_machine(graph).view("sip0").boxes]
    ['cube0', 'io0', 'host']
    """
    models, wires = _Numbered(), _Numbered()
    numbers, known_models = dict[str, int](), dict[str, int]()
    for node in graph.nodes.values():
        told = {} if sources is None else sources(node)
        alike = repr((node.kind, node.impl, node.params, told))
        if alike not in known_models:
            known_models[alike] = models.number(_model(node, told, declared))
        numbers[node.id] = known_models[alike]
    scenes = _Scenes(graph, numbers)
    scenes.fill(wires)
    extent = _extent(graph)
    views: list[View] = []
    known: dict[tuple[object, ...], int] = {}
    parts: dict[str, int] = {}
    for part, scene in sorted(scenes.found.items(), key=_outermost_first):
        signature = (scene.level, scene.signature)
        if signature not in known:
            known[signature] = len(views)
            views.append(_lay_out(scene, extent, wires.kept))
        parts[part] = known[signature]
    return MachineDrawing(tuple(views), parts, tuple(models.kept), tuple(wires.kept), title)


class _Numbered:
    """Number things, equal ones alike."""

    def __init__(self) -> None:
        self.kept: list[Mapping[str, Any]] = []
        self._known: dict[str, int] = {}

    def number(self, thing: Mapping[str, Any]) -> int:
        key = repr(thing)
        if key not in self._known:
            self._known[key] = len(self.kept)
            self.kept.append(thing)
        return self._known[key]


def _outermost_first(each: tuple[str, PartScene]) -> tuple[int, bool, list[tuple[str, int]]]:
    part = each[0]
    return (
        part.count("."), bool(part), [(word.rstrip("0123456789"), number_of(word)) for word in part.split(".")],
    )  # fmt: skip


def _model(node: Node, told: Mapping[str, str], declared: Declarations | None) -> Mapping[str, Any]:
    kinds = {} if declared is None else {param.name: param.dimension for param in declared(node)}
    params = [
        [name, with_unit(_plain(value), kinds.get(name)), told.get(name, "")] for name, value in node.params.items()
    ]
    return {"kind": node.kind, "impl": node.impl, "params": params}


def _plain(value: Any) -> Any:
    """Return a parameter as JSON has it; a table as the text of its entries."""
    if isinstance(value, bool | int | float | str | None):
        return value if not isinstance(value, float) or (value == value and abs(value) != float("inf")) else str(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {entry}" for name, entry in value.items())
    return str(value)


class _Scenes:
    """Find what each part of a graph has to show; `numbers` are those of the models of nodes."""

    def __init__(self, graph: Graph, numbers: Mapping[str, int]) -> None:
        self.found: dict[str, PartScene] = {}
        self._graph, self._numbers = graph, numbers
        self._corners = corners(graph)
        self._inside: dict[str, list[Node]] = {}
        for node in graph.nodes.values():
            for part in parts_around(part_of(node.id)):
                self.found.setdefault(part, PartScene(part))
                self._inside.setdefault(part, []).append(node)
        self._contents = {part: _contents(nodes) for part, nodes in self._inside.items()}
        self._named = _unusual(graph)

    def fill(self, wires: _Numbered) -> None:
        """Put every node and edge into the views that show it."""
        for node in self._graph.nodes.values():
            for part in parts_around(part_of(node.id)):
                self._show(part, node.id)
        for edge in self._graph.edges.values():
            number = wires.number(_wire(edge))
            inside, other = part_of(edge.src), part_of(edge.dst)
            # inside of one part, those around it show both ends as one thing
            parts = (inside,) if inside == other else dict.fromkeys((*parts_around(inside), *parts_around(other)))
            for part in parts:
                if thing_in(part, edge.src) != thing_in(part, edge.dst):
                    scene, pair = self.found[part], (self._show(part, edge.src), self._show(part, edge.dst))
                    wire = (relative(part, edge.src), relative(part, edge.dst), number)
                    scene.joins.setdefault(pair, []).append(wire)
                    scene.kinds[pair] = kind_of(edge)

    def _show(self, part: str, node_id: str) -> str:
        name = thing_in(part, node_id)
        short = relative(part, name)
        things = self.found[part].things
        if short not in things:
            things[short] = self._thing(part, name, short)
        return short

    def _thing(self, part: str, name: str, short: str) -> Thing:
        corner = self._corners.get(part, (0.0, 0.0))
        outside = bool(part) and not name.startswith(f"{part}.")
        if name in self._inside:
            positions = [p for p in (relative_position(node, corner) for node in self._inside[name]) if p is not None]
            middle = None if outside else _middle(positions)
            sub = "" if outside else self._contents[name]
            return Thing(short, PartScene(name).level, sub, middle, opens=True, outside=outside)
        node = self._graph.nodes[name]
        at = None if outside else relative_position(node, corner)
        cell = None if outside else cell_of(node)
        sub = self._named.get(node.impl, "")
        return Thing(short, node.kind, sub, at, cell, self._numbers[name], outside=outside)


def _wire(edge: Edge) -> Mapping[str, Any]:
    return {
        "kind": kind_of(edge),
        "bandwidth": edge.bandwidth,
        "latency": edge.latency,
        "payload_bytes": edge.payload_bytes,
        "header_bytes": edge.header_bytes,
    }


def _unusual(graph: Graph) -> Mapping[str, str]:
    """Return the models to be named in a picture: those of one kind of node that are not called as that."""
    kinds: dict[str, set[str]] = {}
    for node in graph.nodes.values():
        kinds.setdefault(node.impl, set()).add(node.kind)
    return {
        impl: impl for impl, of in kinds.items() if len(of) == 1 and impl and impl.rpartition(".")[2] != next(iter(of))
    }


def _middle(positions: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Return the middle of the range of positions, so that parts which are alike have it at the same place."""
    if not positions:
        return None
    xs, ys = zip(*positions, strict=True)
    return round((min(xs) + max(xs)) / 2, 6), round((min(ys) + max(ys)) / 2, 6)


def _contents(nodes: Sequence[Node]) -> str:
    """Say what is in a part: cubes and PEs, or units."""
    cubes = len({(node.sip, node.cube) for node in nodes if node.cube is not None})
    pes = len({(node.sip, node.cube, node.pe) for node in nodes if node.pe is not None})
    if not pes or all(node.pe is not None for node in nodes):
        return f"{len(nodes)} unit{'' if len(nodes) == 1 else 's'}"
    words = [f"{cubes} cubes"] if cubes > 1 else []
    return ", ".join([*words, f"{pes} PE{'' if pes == 1 else 's'}"])


def _extent(graph: Graph) -> tuple[int, int] | None:
    """Return columns and rows in which the packages of a network stand."""
    network = graph.design.network if isinstance(graph, Machine) else None
    return None if network is None else (network.extent.width, network.extent.height)


def _lay_out(scene: PartScene, extent: tuple[int, int] | None, wires: Sequence[Mapping[str, Any]]) -> View:
    """Choose how a part is laid out by what is in it, whatever its name."""
    own = [thing for thing in scene.things.values() if not thing.outside]
    kinds = Counter(thing.kind for thing in own)
    cells = [thing for thing in own if thing.cell is not None]
    if len(cells) > 1 and len({thing.cell for thing in cells}) == len(cells):
        return lay_out_grid(scene, {thing.id: thing.cell for thing in cells if thing.cell is not None}, wires)
    for kind in ("sip", "cube"):
        if kinds[kind] and scene.level in ("system", "sip"):
            members = [thing for thing in own if thing.kind == kind]
            return lay_out_grid(scene, _group_cells(members, extent if kind == "sip" else None), wires)
    return (lay_out_ring if len(own) <= _ROUND else lay_out_layers)(scene, wires)


def _group_cells(members: Sequence[Thing], extent: tuple[int, int] | None) -> dict[str, tuple[int, int]]:
    """Return the row and column of each package or cube: as its network says, or as they stand."""
    if members[0].kind == "sip" or any(thing.position is None for thing in members):
        ordered = sorted(members, key=lambda thing: number_of(thing.label))
        columns = min(extent[0] if extent is not None else len(members), _ABREAST)
        return {thing.id: divmod(index, columns) for index, thing in enumerate(ordered)}
    at = {thing.id: thing.position for thing in members if thing.position is not None}
    xs, ys = (sorted({round(place[axis], 3) for place in at.values()}) for axis in (0, 1))
    return {name: (ys.index(round(place[1], 3)), xs.index(round(place[0], 3))) for name, place in at.items()}
