"""What one view has to show before it is laid out: the things in it, their places, and what joins them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from attrs import define, field, frozen

from kernbench_builtin.machines.layout import Cell
from kernbench_core.graph import Edge, EdgeKind, Graph, Node
from kernbench_core.topology.naming import router_cell

_PART: Final = re.compile(r"(sip|io|cube|pe)\d+")


@frozen
class Thing:
    """One box to be placed: a node, or all nodes below a part. Equal for parts that are alike.

    `position` is in mm from the corner of the part that the view shows, `cell` the row and column of a router.
    """

    id: str
    kind: str
    sub: str = ""
    position: tuple[float, float] | None = None
    cell: Cell | None = None
    model: int = -1
    opens: bool = False
    outside: bool = False

    @property
    def label(self) -> str:
        """The last part of its id."""
        return self.id.lstrip("=").rpartition(".")[2].lstrip("~^")


@define
class PartScene:
    """The things of one part by id, and the wires of each direction between two of them with their kinds."""

    part: str
    things: dict[str, Thing] = field(factory=dict)
    joins: dict[tuple[str, str], list[tuple[str, str, int]]] = field(factory=dict)
    kinds: dict[tuple[str, str], str] = field(factory=dict)

    @property
    def signature(self) -> tuple[object, ...]:
        """What is equal for parts that look alike."""
        return (
            tuple(sorted(self.things.items())),
            tuple(sorted((pair, tuple(wires)) for pair, wires in self.joins.items())),
        )

    @property
    def level(self) -> str:
        """What it shows: a system, or the word before the number of the part."""
        return re.sub(r"\d+$", "", self.part.rpartition(".")[2]) or "system"


@lru_cache(1 << 16)
def part_of(node_id: str) -> str:
    """Return the innermost part that a node is in, "" for none: what its id begins with."""
    taken: list[str] = []
    for word in node_id.split(".")[:-1]:
        if not _PART.fullmatch(word):
            break
        taken.append(word)
    return ".".join(taken)


def parts_around(part: str) -> Iterator[str]:
    """Yield a part and those around it, "" last."""
    while part:
        yield part
        part = part.rpartition(".")[0]
    yield ""


@lru_cache(1 << 16)
def thing_in(part: str, node_id: str) -> str:
    """Return what shows a node in the view of `part`: itself, or the part that it is in, seen from there."""
    own = part_of(node_id)
    while part and own != part and not own.startswith(f"{part}."):
        part = part.rpartition(".")[0]
    inside = own[len(part) :].lstrip(".") if part else own
    first = inside.partition(".")[0]
    if not first:
        return node_id
    return f"{part}.{first}" if part else first


def relative_position(node: Node, corner: tuple[float, float]) -> tuple[float, float] | None:
    """Return where a node is from a corner, in mm."""
    if node.position is None:
        return None
    return round(node.position[0] - corner[0], 6), round(node.position[1] - corner[1], 6)


def corners(graph: Graph) -> Mapping[str, tuple[float, float]]:
    """Return the least position of each part, in mm."""
    found: dict[str, tuple[float, float]] = {}
    for node in graph.nodes.values():
        if node.position is not None:
            for part in parts_around(part_of(node.id)):
                x, y = found.get(part, node.position)
                found[part] = min(x, node.position[0]), min(y, node.position[1])
    return found


def cell_of(node: Node) -> Cell | None:
    """Return the row and column that the id of a router says."""
    found = router_cell(node.id)
    return None if found is None or node.kind != "router" else (found[1], found[2])


def kind_of(edge: Edge) -> str:
    """Name the kind of an edge."""
    return edge.kind.value if isinstance(edge.kind, EdgeKind) else str(edge.kind)


def number_of(word: str) -> int:
    """Return the number at the end of the name of a part, 0 without one."""
    return int("0" + word.lstrip("abcdefghijklmnopqrstuvwxyz"))
