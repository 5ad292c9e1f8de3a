"""The parts of paths that lead through routers with virtual channels, and which channels each may use.

No circle of waits may close: of messages that each hold a buffer and wait for the next one's. Along rows first and then
along columns none does. Two kinds of meshes need more, two classes of channels each; a message goes from class 0 to
class 1, never back.

- Where rows or columns are rings, it is in class 0 up to the link that closes the ring (the *dateline*) and in class 1
  behind it, until it turns into the other dimension.
- Where a mesh has holes that messages go around, it is in class 1 from where it turns from a column into a row.

What needs no change keeps to one class all the way. A ring of packages has classes of its own (`package_ring`). Paths
of other networks, and over several, are checked one by one as they are first taken, against all before them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from kernbench_builtin.components.flits.channels import Subpath, Switching
from kernbench_builtin.components.flits.package_ring import PackageRing
from kernbench_core.errors import ConfigError
from kernbench_core.topology import naming

#: Nodes of a circle of waits that are told.
_FEW = 8
#: Two nodes and the class of channels between them: 0, 1, or None where there are no classes.
_Hop = tuple[str, str, "int | None"]
#: A mesh, whether the step goes along a row, and whether it closes a ring.
_Step = tuple[str, bool, bool]


class Subpaths:
    """Know every part of a path that has been taken; there is one for all routers of a run."""

    def __init__(self, routers: Mapping[str, Switching]) -> None:
        self._routers = routers
        self._known: dict[tuple[tuple[str, ...], int], Subpath] = {}
        self._cells = {name: cell for name in routers if (cell := naming.router_cell(name)) is not None}
        self._rings: set[tuple[str, bool]] = set()
        for name, router in routers.items():
            for other in router.outputs:
                step = self._step(name, other)
                if step is not None and step[2]:
                    self._rings.add(step[:2])
        self._holed = _holed(set(self._cells.values()))
        self._packages = PackageRing({name: router.outputs for name, router in routers.items()})
        self._waits: dict[_Hop, set[_Hop]] = {}
        self._ordered = all(name.startswith("mesh.") for name in routers)

    def needs_classes(self, source: str, destination: str) -> bool:
        """Say whether the channels between two routers must come in two classes."""
        step = self._step(source, destination)
        if self._packages.has_classes(source, destination):
            return True
        return step is not None and (step[:2] in self._rings or step[0] in self._holed)

    def find(self, path: tuple[str, ...], start: int) -> Subpath:
        """Return the part of `path` that begins at node number `start`, a router; ConfigError when it may deadlock."""
        known = self._known.get((path, start))
        if known is None:
            known = self._known[path, start] = self._make(path, start)
        return known

    def _make(self, path: tuple[str, ...], start: int) -> Subpath:
        end = start
        while end + 1 < len(path) and path[end + 1] in self._routers:
            end += 1
        nodes = path[start : end + 1]
        classes = self._classes(nodes)
        if not self._ordered:
            self._check(nodes, classes)
        routers = [self._routers[node] for node in nodes]
        steps = []
        for router, following, number in zip(routers, (*path[start + 1 : end + 2], "")[: len(nodes)],
                                             (*classes, None), strict=True):  # fmt: skip
            port = router.outputs[following]
            count = len(port.owners)
            first = -(-count // 2) if number == 1 else 0
            last = -(-count // 2) if number == 0 else count
            steps.append((port, first, last))
        return Subpath(routers, steps, end)

    def _step(self, source: str, destination: str) -> _Step | None:
        """Return the mesh of two routers, whether the step goes along a row, and whether it closes a ring."""
        a, b = self._cells.get(source), self._cells.get(destination)
        if a is None or b is None or a[0] != b[0]:
            return None
        return a[0], a[1] == b[1], abs(a[1] - b[1]) + abs(a[2] - b[2]) > 1

    def _classes(self, nodes: Sequence[str]) -> list[int | None]:
        """Return the class of channels for each step between the nodes."""
        steps = [self._step(a, b) for a, b in pairwise(nodes)]
        between = self._packages.classes(nodes)
        classes: list[int | None] = []
        begin = 0
        while begin < len(steps):
            step, stop = steps[begin], begin + 1
            key = self._key(step)
            while stop < len(steps) and key is not None and self._key(steps[stop]) == key:
                stop += 1
            if key is None:
                classes.append(between[begin])
            else:
                classes += self._class_of_each(steps[begin:stop], nodes[begin], nodes[stop])
            begin = stop
        return classes

    def _key(self, step: _Step | None) -> tuple[str, bool] | str | None:
        """Return what steps have alike that are looked at together: a dimension of a ring, or a mesh with holes."""
        if step is None:
            return None
        return step[:2] if step[:2] in self._rings else step[0] if step[0] in self._holed else None

    def _class_of_each(self, steps: Sequence[_Step | None], first: str, last: str) -> list[int | None]:
        """Return the classes of steps in one dimension of a ring, or in one mesh with holes."""
        classes: list[int | None] = []
        number = 0
        for before, step in pairwise((None, *steps)):
            if before is not None and step is not None and (before[2] or (step[1] and not before[1])):
                number += 1
            classes.append(number)
        if number > 1:
            raise ConfigError(
                f"paths through routers with virtual channels must turn from a column into a row at most once, but the "
                f"one from {first} to {last} does so {number} times; choose builtin.forwarding for them."
            )
        if number or any(step is not None and step[2] for step in steps):
            return classes  # what crosses the dateline with its last step holds class 0 there
        (_, row, column), (_, last_row, last_column) = self._cells[first], self._cells[last]
        return [(row + column + last_row + last_column) % 2 for _ in steps]

    def _check(self, nodes: Sequence[str], classes: Sequence[int | None]) -> None:
        """Note that a message may hold each hop while it waits for the next; raise ConfigError for a circle."""
        hops = [(*step, number) for step, number in zip(pairwise(nodes), classes, strict=True)]
        for held, wanted in pairwise(hops):
            after = self._waits.setdefault(held, set())
            if wanted in after:
                continue
            after.add(wanted)
            circle = self._way(wanted, held)
            if circle is not None:
                names = [hop[0] for hop in circle]
                shown = [*names[:_FEW], "…", *names[-1:]] if len(names) > _FEW + 2 else names
                raise ConfigError(
                    "routers with virtual channels must not wait for each other in a cycle, but messages may block "
                    f"each other along {' -> '.join(shown)} -> {names[0]}; choose builtin.forwarding for one of these "
                    "nodes."
                )

    def _way(self, start: _Hop, goal: _Hop) -> list[_Hop] | None:
        """Return the hops from `start` to `goal` by who waits for whom, None when there is no way."""
        came: dict[_Hop, _Hop | None] = {start: None}
        open_hops = [start]
        while open_hops:
            hop = open_hops.pop()
            if hop == goal:
                way = []
                step: _Hop | None = hop
                while step is not None:
                    way.append(step)
                    step = came[step]
                return way[::-1]
            for following in sorted(self._waits.get(hop, ()), key=str):
                if following not in came:
                    came[following] = hop
                    open_hops.append(following)
        return None


def _holed(cells: set[tuple[str, int, int]]) -> set[str]:
    """Return the meshes that have no router at some place between others."""
    meshes: dict[str, set[tuple[int, int]]] = {}
    for mesh, row, column in cells:
        meshes.setdefault(mesh, set()).add((row, column))
    return {
        mesh
        for mesh, places in meshes.items()
        if len(places) < math.prod(max(axis) - min(axis) + 1 for axis in zip(*places, strict=True))
    }
