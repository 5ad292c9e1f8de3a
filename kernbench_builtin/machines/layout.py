"""The automatic layout of one cube: where routers, PEs, m_cpu, sram and UCIe ports sit on the die.

Routers form rows x columns; HBM covers a zone in the middle, where there are none. Each PE takes one router of its
own; m_cpu sits at the middle of the west edge, sram at that of the east edge, each on the nearest router, and those
two routers are left to them as long as there is room. A UCIe port at the middle of each side attaches to as many
routers of that side as its bandwidth needs. Positions are mm from the north-west corner.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from attrs import frozen

from kernbench_builtin.machines.naming import SIDES
from kernbench_builtin.machines.specification import CubeSpec

Cell = tuple[int, int]
"""Row and column of a router, counted from the north-west, both from 0."""
Position = tuple[float, float]
MAX_SIDE = 256
"""Most rows or columns of a router mesh."""


@frozen
class CubeLayout:
    """The layout of every cube of a machine; `zone` is (first row, rows, first column, columns) under HBM."""

    rows: int
    columns: int
    zone: tuple[int, int, int, int]
    routers: Mapping[Cell, Position]
    pes: tuple[Cell, ...]
    m_cpu: tuple[Position, Cell]
    sram: tuple[Position, Cell]
    ucie: Mapping[str, tuple[Position, tuple[Cell, ...]]]


class LayoutFault(ValueError):
    """The mesh does not hold what it must; `key` is the key of `cube.mesh` at fault, "" for the mesh itself."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(text)
        self.key = key


def lay_out_cube(cube: CubeSpec, ucie_bandwidth: float) -> CubeLayout:
    """Lay out a cube whose UCIe ports carry `ucie_bandwidth` (B/ns).

    Raises:
        LayoutFault: the mesh is too small for its PEs, or the HBM zone leaves no border.
    """
    rows, columns = _mesh_size(cube)
    zone = _zone(cube, rows, columns)
    first_row, zone_rows, first_column, zone_columns = zone
    pitch_x, pitch_y = cube.width / columns, cube.height / rows
    routers = {
        (row, column): ((column + 0.5) * pitch_x, (row + 0.5) * pitch_y)
        for row in range(rows)
        for column in range(columns)
        if not (0 <= row - first_row < zone_rows and 0 <= column - first_column < zone_columns)
    }
    if len(routers) < cube.pes:
        covered = rows * columns - len(routers)
        raise LayoutFault(
            "",
            f"must have a router for each of {cube.pes} PEs, but {rows} x {columns} with {covered} under HBM leaves "
            f"{len(routers)}; give more rows or columns, or a smaller hbm_zone.",
        )
    west, east = (0.0, cube.height / 2), (cube.width, cube.height / 2)
    m_cpu, sram = nearest(west, routers), nearest(east, routers)
    kept = [cell for cell in routers if cell not in (m_cpu, sram)]
    slots = kept if len(kept) >= cube.pes else list(routers)
    pes = tuple(slots[index] for index in spread(len(slots), cube.pes))
    wanted = max(1, math.ceil(ucie_bandwidth / cube.noc.bandwidth))
    ucie = {side: _port(side, routers, cube, rows, columns, wanted) for side in SIDES}
    return CubeLayout(rows, columns, zone, routers, pes, (west, m_cpu), (east, sram), ucie)


def nearest(point: Position, routers: Mapping[Cell, Position]) -> Cell:
    """Return the router closest to a point; ties go to the smaller row, then column."""
    return min(routers, key=lambda cell: (round(math.dist(point, routers[cell]), 9), cell))


def spread(available: int, wanted: int) -> list[int]:
    """Choose `wanted` indices out of `available`, evenly and symmetrically; a single one is the middle."""
    if wanted == 1:
        return [(available - 1) // 2]
    return [(2 * i * (available - 1) + wanted - 1) // (2 * (wanted - 1)) for i in range(wanted)]


def _mesh_size(cube: CubeSpec) -> Cell:
    given_rows, given_columns = cube.mesh.rows, cube.mesh.columns
    for key, given in (("rows", given_rows), ("columns", given_columns)):
        if given is not None and not 1 <= given <= MAX_SIDE:
            raise LayoutFault(key, f"must be an integer from 1 to {MAX_SIDE} or auto, not {given}.")
    if given_rows and given_columns:
        return given_rows, given_columns
    room = cube.pes + 2
    most = 2 * room + 3
    sizes = [
        (rows * columns, columns - rows, rows, columns)
        for rows in ([given_rows] if given_rows else range(3, math.isqrt(most) + 4))
        for columns in ([given_columns] if given_columns else range(rows if not given_rows else 1, most))
        if rows * columns - _covered(cube, rows, columns) >= room
    ]
    if not sizes:
        raise LayoutFault("", f"must have room for {cube.pes} PEs, m_cpu and sram; leave rows and columns to auto.")
    _, _, rows, columns = min(sizes, key=lambda size: (size[0], abs(size[1]), size[2]))
    return rows, columns


def _covered(cube: CubeSpec, rows: int, columns: int) -> int:
    zone = cube.mesh.hbm_zone
    covered_rows = _half(rows) if zone.rows is None else zone.rows
    covered_columns = _half(columns) if zone.columns is None else zone.columns
    return covered_rows * covered_columns


def _half(count: int) -> int:
    """Return about half of a row count, such that what is left splits evenly to both sides."""
    half = count // 2
    return half - (count - half) % 2


def _zone(cube: CubeSpec, rows: int, columns: int) -> tuple[int, int, int, int]:
    given = cube.mesh.hbm_zone
    zone_rows = _half(rows) if given.rows is None else given.rows
    zone_columns = _half(columns) if given.columns is None else given.columns
    if not (zone_rows and zone_columns):
        return 0, 0, 0, 0
    if zone_rows > rows - 2 or zone_columns > columns - 2:
        raise LayoutFault(
            "hbm_zone",
            f"must leave a border of routers, not cover {zone_rows} x {zone_columns} of {rows} x {columns}; shrink it.",
        )
    return (rows - zone_rows) // 2, zone_rows, (columns - zone_columns) // 2, zone_columns


def _port(
    side: str, routers: Mapping[Cell, Position], cube: CubeSpec, rows: int, columns: int, wanted: int
) -> tuple[Position, tuple[Cell, ...]]:
    middle_x, middle_y = cube.width / 2, cube.height / 2
    point, edge = {
        "n": ((middle_x, 0.0), [(0, c) for c in range(columns)]),
        "s": ((middle_x, cube.height), [(rows - 1, c) for c in range(columns)]),
        "w": ((0.0, middle_y), [(r, 0) for r in range(rows)]),
        "e": ((cube.width, middle_y), [(r, columns - 1) for r in range(rows)]),
    }[side]
    candidates: Sequence[Cell] = [cell for cell in edge if cell in routers]
    chosen = spread(len(candidates), min(wanted, len(candidates)))
    return point, tuple(candidates[index] for index in chosen)
