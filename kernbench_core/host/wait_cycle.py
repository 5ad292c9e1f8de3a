"""The shortest cycle in a graph of waits."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TypeVar

_Node = TypeVar("_Node", str, int)


def shortest_cycle(graph: Mapping[_Node, Iterable[_Node]]) -> tuple[_Node, ...]:
    """Return the nodes of the shortest cycle, starting at its smallest one; empty when there is none."""
    best: tuple[_Node, ...] = ()
    for start in sorted(graph):
        came_from: dict[_Node, _Node] = {}
        queue = deque([start])
        while queue:
            node = queue.popleft()
            for follower in graph.get(node, ()):
                if follower == start:
                    found = [node]
                    while found[-1] != start:
                        found.append(came_from[found[-1]])
                    if not best or len(found) < len(best):
                        best = tuple(reversed(found))
                    queue.clear()
                    break
                if follower not in came_from:
                    came_from[follower] = node
                    queue.append(follower)
    return best
