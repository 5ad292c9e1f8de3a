"""The parts of paths that lead through routers with virtual channels, and which channels each may use.

Where rows or columns of routers are closed to rings, channels come in two classes, and a message is in class 0 up to
the link that closes the ring (the *dateline*) and in class 1 behind it. So no message of class 0 waits for a buffer of
class 0 beyond the dateline, and no circle of waits can close. What never crosses it keeps to one class all the way.
Dimension order does the rest. Paths of other networks are checked one by one, as they are first taken: the buffers
that they hold and wait for must not form a circle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from kernbench_builtin.components.flits.channels import Subpath, Switching
from kernbench_core.errors import ConfigError
from kernbench_core.topology import naming

#: Two nodes and the class of channels between them: 0, 1, or None where there are no classes.
_Hop = tuple[str, str, "int | None"]


class Subpaths:
    """Know every part of a path that has been taken; there is one for all routers of a run."""

    def __init__(self, routers: Mapping[str, Switching]) -> None:
        self._routers = routers
        self._known: dict[tuple[tuple[str, ...], int], Subpath] = {}
        self._cells = {name: cell for name in routers if (cell := naming.router_cell(name)) is not None}
        self._rings = {
            (mesh, across)
            for name, router in routers.items()
            for other in router.outputs
            if other in routers and (step := self._step(name, other)) is not None
            for mesh, across, closing in (step,)
            if closing
        }
        self._waits: dict[_Hop, set[_Hop]] = {}
        self._ordered = all(name.startswith("mesh.") for name in routers)

    def closes_ring(self, source: str, destination: str) -> bool:
        """Say whether the link between two routers joins the ends of a row or column."""
        step = self._step(source, destination)
        return step is not None and step[2]

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

    def _step(self, source: str, destination: str) -> tuple[str, bool, bool] | None:
        """Return the mesh of two routers, whether the step goes along a row, and whether it closes a ring."""
        a, b = self._cells.get(source), self._cells.get(destination)
        if a is None or b is None or a[0] != b[0]:
            return None
        return a[0], a[1] == b[1], abs(a[1] - b[1]) + abs(a[2] - b[2]) > 1

    def _classes(self, nodes: Sequence[str]) -> list[int | None]:
        """Return the class of channels for each step between the nodes."""
        steps = [self._step(a, b) for a, b in pairwise(nodes)]
        classes: list[int | None] = []
        begin = 0
        while begin < len(steps):
            step, stop = steps[begin], begin + 1
            while stop < len(steps) and _same_run(step, steps[stop]):
                stop += 1
            run = steps[begin:stop]
            if step is None or (step[0], step[1]) not in self._rings:
                classes += [None] * len(run)
            else:
                classes += self._dateline(run, nodes[begin], nodes[stop])
            begin = stop
        return classes

    def _dateline(self, run: Sequence[tuple[str, bool, bool] | None], first: str, last: str) -> list[int | None]:
        crossing = next((index for index, step in enumerate(run) if step is not None and step[2]), None)
        if crossing is not None:
            return [int(index > crossing) for index in range(len(run))]
        (_, row, column), (_, last_row, last_column) = self._cells[first], self._cells[last]
        return [(row + column + last_row + last_column) % 2 for _ in run]

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
                raise ConfigError(
                    "routers with virtual channels must not wait for each other in a circle, but messages may hold a "
                    f"buffer and wait for the next one along {' -> '.join(hop[0] for hop in circle)} -> "
                    f"{circle[0][0]}; choose builtin.forwarding for one of these nodes."
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


def _same_run(a: tuple[str, bool, bool] | None, b: tuple[str, bool, bool] | None) -> bool:
    return a is not None and b is not None and a[:2] == b[:2]
