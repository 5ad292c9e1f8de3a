"""Dimension order: where routers sit in their meshes, which of equal ways a path takes, and how it is laid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kernbench_core.graph import Graph
from kernbench_core.topology import naming

Path = tuple[str, ...]
Half = tuple[bool, bool]
"""Whether something lies in the southern and in the eastern half of its mesh."""


class MeshOrder:
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

    def half(self, nodes: Iterable[str]) -> Half | None:
        """Return whether the first router among nodes lies in the southern and in the eastern half of its mesh."""
        for node in nodes:
            if node in self._cells:
                mesh, row, column = self._cells[node]
                return 2 * row > self._sizes[mesh][0], 2 * column > self._sizes[mesh][1]
        return None

    def order(self, node: str, neighbour: str, half: Half) -> tuple[bool, int, int, str]:
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
