"""Lay out things that stand in rows and columns: packages, cubes, routers with what hangs on them.

What belongs to one router hangs beside it; what stands at a side of the die, or joins several, goes to that side; what
belongs to other parts stands outside of it all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import define, evolve, field

from kernbench_builtin.machines.drawing.routes import OFFSET, Router, lines_of, reached
from kernbench_builtin.machines.drawing.scene import PartScene, Thing
from kernbench_builtin.machines.drawing.views import Box, Line, Spot, View, Zone
from kernbench_builtin.machines.layout import Cell

_ROUTER: Final = (60.0, 26.0)
_GROUP: Final = (132.0, 58.0)
_HUNG: Final = (82.0, 32.0)
_SIDE: Final = (88.0, 32.0)
_GAP: Final = 30.0
#: From the cells to what stands at a side, and from there to what is outside.
_CHANNEL: Final = 56.0
_RING: Final = 46.0
_MARGIN: Final = 14.0
_SIDES: Final = ("n", "s", "w", "e")


@define
class _Grid:
    scene: PartScene
    cells: Mapping[str, Cell]
    hung: dict[str, str] = field(factory=dict)
    sides: dict[str, str] = field(factory=dict)
    boxes: dict[str, Box] = field(factory=dict)

    @property
    def rows(self) -> int:
        return max(row for row, _ in self.cells.values()) + 1

    @property
    def columns(self) -> int:
        return max(column for _, column in self.cells.values()) + 1


def lay_out_grid(scene: PartScene, cells: Mapping[str, Cell], wires: Sequence[Mapping[str, Any]]) -> View:
    """Place `cells` in their rows and columns, and everything else by what it is joined to."""
    grid = _Grid(scene, cells)
    _assign(grid)
    pitch = _place_cells(grid)
    zones = _zones(grid, pitch)
    _place_sides(grid)
    _shift(grid.boxes, zones)
    skipped = _commands(scene)
    drawn = PartScene(scene.part, scene.things, {p: j for p, j in scene.joins.items() if p not in skipped}, scene.kinds)
    lines = _in_sight(grid, zones, lines_of(drawn, grid.boxes, wires, _Ways(grid)))
    notes = _notes(scene, skipped)
    width = max(box.x + box.width for box in grid.boxes.values()) + _MARGIN
    height = max(box.y + box.height for box in grid.boxes.values()) + _MARGIN
    reach = [point for line in lines for point in reached(line)]
    width, height = max([width, *(x + _MARGIN for x, _ in reach)]), max([height, *(y + _MARGIN for _, y in reach)])
    return View(scene.level, round(width, 1), round(height, 1), tuple(grid.boxes.values()), lines, tuple(zones), notes)


def _commands(scene: PartScene) -> set[tuple[str, str]]:
    """Return the pairs of a die that orders alone join: a bundle of wires over everything."""
    if scene.level != "cube":
        return set()
    return {pair for pair in scene.joins if scene.kinds[pair] == "command"}


def _notes(scene: PartScene, skipped: set[tuple[str, str]]) -> tuple[str, ...]:
    count = sum(len(scene.joins[pair]) for pair in skipped)
    if not count:
        return ()
    ends = sorted({scene.things[pair[0]].label for pair in skipped if not scene.things[pair[0]].opens})
    return (f"Not drawn: {count} command wires between {', '.join(ends)} and the PEs.",)


def _assign(grid: _Grid) -> None:
    """Say where each thing that is no cell goes: to a cell, to a side, or outside."""
    scene, joined = grid.scene, _neighbours(grid.scene)
    own = [thing for thing in scene.things.values() if not thing.outside and thing.id not in grid.cells]
    xs = [thing.position for thing in scene.things.values() if thing.position is not None]
    for thing in own:
        routers = [name for name in joined.get(thing.id, ()) if name in grid.cells]
        side = _side_of(thing, xs)
        if len(routers) == 1 and not side and not scene.things[routers[0]].opens:
            grid.hung[thing.id] = routers[0]
    for thing in own:
        if thing.id not in grid.hung:
            grid.sides[thing.id] = _side_of(thing, xs) or ("n" if thing.kind in ("host", "io") else "s")
    for thing in scene.things.values():
        if thing.outside:
            near = [grid.sides[name] for name in joined.get(thing.id, ()) if name in grid.sides]
            grid.sides[thing.id] = Counter(near).most_common(1)[0][0] if near else "n"


def _side_of(thing: Thing, positions: Sequence[tuple[float, float]]) -> str:
    """Return the side at whose edge a thing stands, "" for one inside."""
    if thing.position is None or len(positions) < 2:
        return ""
    (left, right), (top, bottom) = ((min(axis), max(axis)) for axis in zip(*positions, strict=True))
    x, y = thing.position
    for side, at_edge in (("n", y <= top), ("s", y >= bottom), ("w", x <= left), ("e", x >= right)):
        if (at_edge and not thing.opens) or (at_edge and thing.kind == "io"):
            return side
    return ""


def _neighbours(scene: PartScene) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for source, destination in sorted(scene.joins):
        if scene.kinds[source, destination] != "command":
            found.setdefault(source, []).append(destination)
    return found


def _place_cells(grid: _Grid) -> tuple[float, float]:
    """Place the cells with what hangs on them; return their pitch."""
    hung: dict[str, list[str]] = {}
    for name, router in sorted(grid.hung.items(), key=lambda each: (not grid.scene.things[each[0]].opens, each[0])):
        hung.setdefault(router, []).append(name)
    routers = all(not grid.scene.things[name].opens for name in grid.cells)
    width, height = _ROUTER if routers else _GROUP
    most = max(map(len, hung.values()), default=0)
    trunk = 10.0 * (most + 1)
    across = max(width, width / 2 + trunk + _HUNG[0]) if most else width
    down = height + most * (_HUNG[1] + 8) + (4 if most else 0)
    pitch = across + _GAP, down + _GAP
    for name, (row, column) in grid.cells.items():
        x, y = column * pitch[0], row * pitch[1]
        grid.boxes[name] = _box(grid.scene.things[name], x, y, width, height)
        for index, each in enumerate(hung.get(name, ())):
            grid.boxes[each] = _box(
                grid.scene.things[each], x + width / 2 + trunk, y + height + 8 + index * (_HUNG[1] + 8), *_HUNG
            )
    return pitch


def _zones(grid: _Grid, pitch: tuple[float, float]) -> list[Zone]:
    """Mark what lies between routers and has none: the area that HBM covers."""
    taken = set(grid.cells.values())
    bare = [(r, c) for r in range(grid.rows) for c in range(grid.columns) if (r, c) not in taken]
    if not bare or any(grid.scene.things[name].opens for name in grid.cells):
        return []
    rows, columns = [row for row, _ in bare], [column for _, column in bare]
    x, y = min(columns) * pitch[0], min(rows) * pitch[1]
    width = (max(columns) - min(columns) + 1) * pitch[0] - _GAP
    height = (max(rows) - min(rows) + 1) * pitch[1] - _GAP
    label = "HBM" if any(thing.kind.startswith("hbm") for thing in grid.scene.things.values()) else "no routers"
    return [Zone(label, x, y, width, height)]


def _place_sides(grid: _Grid) -> None:
    """Place what stands at the sides, then, further out, what belongs to other parts."""
    reach = _reach(grid.boxes)
    things = grid.scene.things
    for ring in (False, True):
        gap = _RING if ring else _CHANNEL
        before = _reach(grid.boxes)
        for side in _SIDES:
            names = sorted(n for n, at in grid.sides.items() if at == side and things[n].outside == ring)
            if names:
                _along_side(grid, side, names, gap, before if ring else reach)


def _along_side(
    grid: _Grid, side: str, names: Sequence[str], gap: float, reach: tuple[float, float, float, float]
) -> None:
    """Spread boxes evenly along a side, those outside as near as they can be to what they are joined to."""
    left, top, right, bottom = reach
    parts = any(grid.scene.things[name].opens and not grid.scene.things[name].outside for name in names)
    width, height = _GROUP if parts else _SIDE
    upright = side in ("w", "e")
    low, high = (top, bottom) if upright else (left, right)
    size = height if upright else width
    joined = _neighbours(grid.scene)
    wished = []
    for index, name in enumerate(names):
        partners = [grid.boxes[each].centre[upright] for each in joined.get(name, ()) if each in grid.boxes]
        outside = grid.scene.things[name].outside
        even = low + (high - low) * (index + 0.5) / len(names)
        wished.append((sum(partners) / len(partners) if partners and outside else even, name))
    at = -float("inf")
    spread = []
    for wish, name in sorted(wished):
        at = max(wish, at + size + 12)
        spread.append((at, name))
    middle = sum(at - wish for (at, _), (wish, _) in zip(spread, sorted(wished), strict=True)) / len(spread)
    for at, name in spread:
        along = at - middle - size / 2
        x, y = {
            "n": (along, top - gap - height),
            "s": (along, bottom + gap),
            "w": (left - gap - width, along),
            "e": (right + gap, along),
        }[side]
        grid.boxes[name] = _box(grid.scene.things[name], x, y, width, height)


def _reach(boxes: Mapping[str, Box]) -> tuple[float, float, float, float]:
    return (
        min(box.x for box in boxes.values()),
        min(box.y for box in boxes.values()),
        max(box.x + box.width for box in boxes.values()),
        max(box.y + box.height for box in boxes.values()),
    )


def _shift(boxes: dict[str, Box], zones: list[Zone]) -> None:
    """Move everything so that it begins at the margin."""
    left, top, _, _ = _reach(boxes)
    dx, dy = _MARGIN - left, _MARGIN - top
    for name, box in boxes.items():
        boxes[name] = evolve(box, x=round(box.x + dx, 1), y=round(box.y + dy, 1))
    zones[:] = [evolve(zone, x=round(zone.x + dx, 1), y=round(zone.y + dy, 1)) for zone in zones]


def _in_sight(grid: _Grid, zones: list[Zone], lines: Sequence[Line]) -> tuple[Line, ...]:
    """Move everything by as much as lines lead beyond the margin to the left or above."""
    reach = [point for line in lines for point in reached(line)]
    dx, dy = (max(0.0, _MARGIN - min((point[axis] for point in reach), default=_MARGIN)) for axis in (0, 1))
    for name, box in grid.boxes.items():
        grid.boxes[name] = evolve(box, x=round(box.x + dx, 1), y=round(box.y + dy, 1))
    zones[:] = [evolve(zone, x=round(zone.x + dx, 1), y=round(zone.y + dy, 1)) for zone in zones]
    return tuple(
        evolve(line, points=tuple((round(x + dx, 1), round(y + dy, 1)) for x, y in line.points)) for line in lines
    )


def _box(thing: Thing, x: float, y: float, width: float, height: float) -> Box:
    return Box(
        thing.id, thing.label, thing.sub, thing.kind, x, y, width, height, thing.model, thing.opens, thing.outside
    )


class _BetweenCells(Router):
    """Where no bow is free, lead a line through the gap beside its column."""

    def otherwise(self, source: Box, destination: Box) -> tuple[Spot, ...]:
        """Return the way from the right of a cell, along the gap, into the right of another."""
        shift = OFFSET if (source.x, source.y) < (destination.x, destination.y) else -OFFSET
        gap = max(source.x + source.width, destination.x + destination.width) + _GAP / 2 + shift
        start, end = (box.centre[1] + shift for box in (source, destination))
        return (
            (source.x + source.width, start), (gap, start), (gap, end), (destination.x + destination.width, end),
        )  # fmt: skip


class _Ways:
    """Lead lines of a grid: straight between neighbours, around corners to what hangs on a cell or stands at a side."""

    def __init__(self, grid: _Grid) -> None:
        self._grid = grid
        self._straight = _BetweenCells(grid.boxes.values())
        self._ports: dict[str, list[str]] = {}
        for source, destination in sorted(grid.scene.joins):
            if source in grid.sides and destination in grid.cells:
                self._ports.setdefault(source, []).append(destination)

    def __call__(self, source: Box, destination: Box) -> tuple[tuple[Spot, ...], bool]:
        grid = self._grid
        for box, other, turned in ((source, destination, False), (destination, source, True)):
            if grid.hung.get(box.id) == other.id:
                points = self._hung(box, other, turned)
            elif box.id in grid.sides and other.id in grid.cells and not grid.scene.things[box.id].outside:
                points = self._side(box, other, turned)
            else:
                continue
            return (tuple(reversed(points)) if turned else points), False
        return self._straight(source, destination)

    def _hung(self, box: Box, router: Box, turned: bool) -> tuple[Spot, ...]:
        """Lead a line from a hung box to the left, then up into its router."""
        order = sum(1 for each in self._grid.hung if self._grid.hung[each] == router.id and
                    self._grid.boxes[each].y < box.y)
        shift = OFFSET if turned else -OFFSET
        x = router.centre[0] + 12 + order * 9 + shift
        y = box.centre[1] + shift
        return ((box.x, y), (x, y), (x, router.y + router.height))

    def _side(self, box: Box, cell: Box, turned: bool) -> tuple[Spot, ...]:
        """Lead a line from a side over its channel, then along the middle of the cell's row or column."""
        side = self._grid.sides[box.id]
        ports = self._ports.get(box.id, [cell.id])
        index = ports.index(cell.id) if cell.id in ports else 0
        shift = OFFSET if turned else -OFFSET
        exit_at = (index + 1) / (len(ports) + 1)
        sign = -1 if side in ("n", "w") else 1
        upright = side in ("n", "s")
        edge = {"n": box.y + box.height, "s": box.y, "w": box.x + box.width, "e": box.x}[side]
        beside = sorted(name for name, at in self._grid.sides.items() if at == side and name in self._ports)
        rank = min(index, len(ports) - 1 - index) + (0 if upright else 2 * beside.index(box.id))
        lane = edge - sign * (10 + 9 * (rank % 5)) + shift
        if upright:
            x = box.x + box.width * exit_at + shift
            if self._hidden(cell, side):
                gap = (cell.x + cell.width + _GAP / 2 if side == "s" else cell.x - _GAP / 2) + shift
                # apart from lines between neighbours, which lead into the middle
                end = (cell.x + cell.width if side == "s" else cell.x), cell.y + cell.height / 4 + shift
                return ((x, edge), (x, lane), (gap, lane), (gap, end[1]), end)
            end = cell.centre[0] + shift, (cell.y + cell.height if side == "s" else cell.y)
            return ((x, edge), (x, lane), (end[0], lane), end)
        y = box.y + box.height * exit_at + shift
        end = (cell.x + cell.width if side == "e" else cell.x), cell.centre[1] + shift
        return ((edge, y), (lane, y), (lane, end[1]), end)

    def _hidden(self, cell: Box, side: str) -> bool:
        """Whether another cell stands between one and a side."""
        row, column = self._grid.cells[cell.id]
        others = [r for r, c in self._grid.cells.values() if c == column]
        routers = not self._grid.scene.things[cell.id].opens
        return not routers and row != (max(others) if side == "s" else min(others))
