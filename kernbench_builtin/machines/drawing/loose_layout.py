"""Lay out things that have no places of their own: the units of a PE around an ellipse, any other graph in layers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import evolve

from kernbench_builtin.machines.drawing.routes import Router, lines_of, reached
from kernbench_builtin.machines.drawing.scene import PartScene, Thing
from kernbench_builtin.machines.drawing.views import Box, View

_BOX: Final = (112.0, 40.0)
_MARGIN: Final = 16.0
#: Boxes of one layer that stand in a row, and the distance of boxes.
_ACROSS: Final = 10
_GAP: Final = (36.0, 48.0)
#: Angle between things outside of an ellipse, as long as all of them fit.
_APART: Final = 0.42
#: Units that work together stand together; those that are not named here follow.
_ORDER: Final = (
    "pe_cpu", "pe_scheduler", "pe_gemm", "pe_fetch_store", "pe_math", "pe_tcm", "pe_dma", "pe_ipcq", "pe_mmu",
)  # fmt: skip


def lay_out_ring(scene: PartScene, wires: Sequence[Mapping[str, Any]]) -> View:
    """Place things around an ellipse, so that a line between two of them meets no third; what is outside beyond."""
    rank = {kind: number for number, kind in enumerate(_ORDER)}
    own = sorted(
        (thing for thing in scene.things.values() if not thing.outside),
        key=lambda thing: (rank.get(thing.kind, len(rank)), thing.id),
    )
    radius = max(210.0, 46.0 * len(own)), max(130.0, 28.0 * len(own))
    boxes: dict[str, Box] = {}
    angle_of: dict[str, float] = {}
    for index, thing in enumerate(own):
        angle = 2 * math.pi * index / len(own) - math.pi / 2
        angle_of[thing.id] = angle
        boxes[thing.id] = _at(thing, radius[0] * math.cos(angle), radius[1] * math.sin(angle))
    _around(scene, boxes, angle_of, radius)
    return _finished(scene, boxes, wires)


def _around(
    scene: PartScene, boxes: dict[str, Box], angle_of: Mapping[str, float], radius: tuple[float, float]
) -> None:
    """Place what is outside on a wider ellipse, in the order of what it is joined to, and apart from each other."""
    wished = []
    for thing in sorted((thing for thing in scene.things.values() if thing.outside), key=lambda thing: thing.id):
        near = [angle_of[b] for a, b in scene.joins if a == thing.id and b in angle_of]
        near = near or [angle_of[a] for a, b in scene.joins if b == thing.id and a in angle_of]
        x, y = sum(map(math.cos, near)), sum(map(math.sin, near))
        wished.append((math.atan2(y, x) % (2 * math.pi) if near else math.pi, thing))
    wished.sort(key=lambda each: (each[0], each[1].id))
    grown = max(1.0, len(wished) / 12)
    wide = radius[0] * grown + _BOX[0] + 50, radius[1] * grown + _BOX[1] + 50
    for angle, (_, thing) in zip(_apart([angle for angle, _ in wished]), wished, strict=True):
        boxes[thing.id] = _at(thing, wide[0] * math.cos(angle), wide[1] * math.sin(angle))


def _apart(angles: Sequence[float]) -> list[float]:
    """Move ascending angles of a circle as little as it takes to have them apart, their order kept."""
    count = len(angles)
    if count < 2:
        return list(angles)
    least = min(_APART, 2 * math.pi / count)
    gaps = [(angles[(i + 1) % count] - angles[i]) % (2 * math.pi) for i in range(count)]
    first = (max(range(count), key=gaps.__getitem__) + 1) % count  # begin behind the widest gap
    order = [(first + i) % count for i in range(count)]
    start = angles[first]
    asked = [(angles[i] - start) % (2 * math.pi) for i in order]
    placed: list[float] = []
    for angle in asked:
        placed.append(max(angle, placed[-1] + least) if placed else angle)
    shift = sum(b - a for a, b in zip(asked, placed, strict=True)) / count
    found = dict(zip(order, (start + each - shift for each in placed), strict=True))
    return [found[i] for i in range(count)]


def lay_out_layers(scene: PartScene, wires: Sequence[Mapping[str, Any]]) -> View:
    """Place things in layers by their distance from one end, those joined to the same near each other."""
    near: dict[str, list[str]] = {name: [] for name in scene.things}
    for source, destination in sorted(scene.joins):
        near[source].append(destination)
        near[destination].append(source)
    boxes: dict[str, Box] = {}
    top = 0.0
    for layer in _layers(near):
        place = {name: box.centre[0] for name, box in boxes.items()}
        ordered = sorted(layer, key=lambda name: (_mean([place[n] for n in near[name] if n in place]), name))
        for row in (ordered[at : at + _ACROSS] for at in range(0, len(ordered), _ACROSS)):
            left = -len(row) * (_BOX[0] + _GAP[0]) / 2
            for index, name in enumerate(row):
                x = left + index * (_BOX[0] + _GAP[0]) + _BOX[0] / 2
                boxes[name] = _at(scene.things[name], x, top)
            top += _BOX[1] + _GAP[1]
    return _finished(scene, boxes, wires)


def _layers(near: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return things by distance from an end of each connected part, one part after the other."""
    found: list[list[str]] = []
    left = dict.fromkeys(sorted(near))
    while left:
        first = _distances(near, next(iter(left)))
        end = _distances(near, max(sorted(first), key=lambda name: first[name]))
        for name, distance in end.items():
            left.pop(name, None)
            if distance == 0:
                base = len(found)
            while len(found) <= base + distance:
                found.append([])
            found[base + distance].append(name)
    return found


def _distances(near: Mapping[str, Sequence[str]], start: str) -> dict[str, int]:
    reached = {start: 0}
    frontier = [start]
    while frontier:
        following = []
        for name in frontier:
            for other in near[name]:
                if other not in reached:
                    reached[other] = reached[name] + 1
                    following.append(other)
        frontier = following
    return reached


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _at(thing: Thing, x: float, y: float) -> Box:
    width, height = _BOX
    return Box(
        thing.id, thing.label, thing.sub, thing.kind, x - width / 2, y - height / 2, width, height, thing.model,
        thing.opens, thing.outside,
    )  # fmt: skip


def _finished(scene: PartScene, boxes: Mapping[str, Box], wires: Sequence[Mapping[str, Any]]) -> View:
    """Lead the lines, and move everything so that it begins at the margin."""
    lines = lines_of(scene, boxes, wires, Router(boxes.values()))
    xs = [x for line in lines for x, _ in reached(line)] + [box.x for box in boxes.values()]
    ys = [y for line in lines for _, y in reached(line)] + [box.y for box in boxes.values()]
    dx, dy = _MARGIN - min(xs), _MARGIN - min(ys)
    moved = tuple(evolve(box, x=round(box.x + dx, 1), y=round(box.y + dy, 1)) for box in boxes.values())
    shifted = tuple(
        evolve(line, points=tuple((round(x + dx, 1), round(y + dy, 1)) for x, y in line.points)) for line in lines
    )
    width = max([*(x + dx for x in xs), *(box.x + box.width for box in moved)]) + _MARGIN
    height = max([*(y + dy for y in ys), *(box.y + box.height for box in moved)]) + _MARGIN
    return View(scene.level, width, height, moved, shifted)
