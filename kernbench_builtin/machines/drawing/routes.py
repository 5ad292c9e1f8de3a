"""Ways of lines between boxes that lie on no other box."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from kernbench_builtin.machines.drawing.scene import PartScene
from kernbench_builtin.machines.drawing.views import Box, Line, Spot

#: Distance of the two directions of a link from its middle, in px.
OFFSET: Final = 3.0
_MARGIN: Final = 4.0
_BENDS: Final = (0.0, 28.0, -28.0, 56.0, -56.0, 90.0, -90.0, 130.0, -130.0, 180.0, -180.0, 250.0, -250.0)
_STEPS: Final = 24
#: Of more boxes, lines go straight: looking for ways around them would take longer than anybody waits.
_MOST_BOXES: Final = 120


def lines_of(
    scene: PartScene,
    boxes: Mapping[str, Box],
    wires: Sequence[Mapping[str, Any]],
    way: Callable[[Box, Box], tuple[tuple[Spot, ...], bool]],
) -> tuple[Line, ...]:
    """Return the lines of a scene whose ends have boxes, each led by `way`, which says too whether it is curved."""
    least = min((wires[n]["bandwidth"] for joined in scene.joins.values() for _, _, n in joined), default=1.0)
    found = []
    for (source, destination), joined in sorted(scene.joins.items()):
        if source in boxes and destination in boxes:
            points, curved = way(boxes[source], boxes[destination])
            bandwidth = sum(wires[n]["bandwidth"] for _, _, n in joined)
            weight = round(min(4.0, 1.0 + 0.5 * math.log2(max(1.0, bandwidth / least))), 2)
            rounded = tuple((round(x, 1), round(y, 1)) for x, y in points)
            kind = scene.kinds[source, destination]
            found.append(Line(source, destination, kind, rounded, tuple(joined), weight, curved))
    return tuple(found)


class Router:
    """Lead lines straight from border to border, or in a bow where another box is in the way."""

    def __init__(self, boxes: Iterable[Box]) -> None:
        self._boxes = tuple(boxes)

    def __call__(self, source: Box, destination: Box) -> tuple[tuple[Spot, ...], bool]:
        """Return the points of a way; of three, the middle one is the control point of a bow."""
        others = [box for box in self._boxes if box is not source and box is not destination]
        if len(others) > _MOST_BOXES:
            return self._way(source, destination, 0.0), False
        for bend in _BENDS:
            points = self._way(source, destination, bend)
            near = _near(points, others)
            if not near or not any(_crosses(point, box) for point in _along(points) for box in near):
                return points, bool(bend)
        return self.otherwise(source, destination), False

    def otherwise(self, source: Box, destination: Box) -> tuple[Spot, ...]:
        """Return the way where every bow meets a box: straight over it."""
        return self._way(source, destination, 0.0)

    @staticmethod
    def _way(source: Box, destination: Box, bend: float) -> tuple[Spot, ...]:
        (ax, ay), (bx, by) = source.centre, destination.centre
        length = math.hypot(bx - ax, by - ay) or 1.0
        # The bow of both directions goes to the same side: the sign is that of the undirected pair.
        sign = 1.0 if (ax, ay) < (bx, by) else -1.0
        nx, ny = -(by - ay) / length, (bx - ax) / length
        shift = (nx * OFFSET, ny * OFFSET)
        if not bend:
            start, end = border(source, (bx, by)), border(destination, (ax, ay))
            return (_moved(start, shift), _moved(end, shift))
        middle = ((ax + bx) / 2 + nx * bend * sign * 2, (ay + by) / 2 + ny * bend * sign * 2)
        start, end = border(source, middle), border(destination, middle)
        return (_moved(start, shift), _moved(middle, shift), _moved(end, shift))


def reached(line: Line) -> Iterable[Spot]:
    """Return the points that a line reaches: those of its way, or along its bow."""
    return _along(line.points) if line.curved else line.points


def border(box: Box, towards: Spot) -> Spot:
    """Return where the line from the middle of a box to a point leaves it."""
    cx, cy = box.centre
    dx, dy = towards[0] - cx, towards[1] - cy
    scale = min(
        box.width / 2 / abs(dx) if dx else math.inf,
        box.height / 2 / abs(dy) if dy else math.inf,
    )
    return (cx, cy) if scale == math.inf else (cx + dx * min(1.0, scale), cy + dy * min(1.0, scale))


def _moved(point: Spot, by: Spot) -> Spot:
    return point[0] + by[0], point[1] + by[1]


def _along(points: Sequence[Spot]) -> Iterable[Spot]:
    """Yield points along a straight line or a bow."""
    for step in range(_STEPS + 1):
        t = step / _STEPS
        if len(points) == 2:
            (ax, ay), (bx, by) = points
            yield ax + (bx - ax) * t, ay + (by - ay) * t
        else:
            (ax, ay), (mx, my), (bx, by) = points
            u = 1 - t
            yield u * u * ax + 2 * u * t * mx + t * t * bx, u * u * ay + 2 * u * t * my + t * t * by


def _near(points: Sequence[Spot], boxes: Iterable[Box]) -> list[Box]:
    """Return the boxes that a way may cross: it stays between the outermost of its points."""
    xs, ys = zip(*points, strict=True)
    left, right, top, bottom = min(xs) - _MARGIN, max(xs) + _MARGIN, min(ys) - _MARGIN, max(ys) + _MARGIN
    return [
        box for box in boxes
        if box.x < right and left < box.x + box.width and box.y < bottom and top < box.y + box.height
    ]  # fmt: skip


def _crosses(point: Spot, box: Box) -> bool:
    x, y = point
    return (
        box.x - _MARGIN < x < box.x + box.width + _MARGIN and box.y - _MARGIN < y < box.y + box.height + _MARGIN
    )
