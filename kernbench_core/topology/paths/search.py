"""Dijkstra's search over numbered nodes, whose cost is one integer: ranks before wire latency before hops.

Many transfers ask for many paths, each search goes through hundreds of nodes, and whole numbers are compared at once,
where tuples are compared part by part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush

from kernbench_core.units import LARGEST

Steps = Sequence[tuple[int, int]]
"""Where a path may go from a node, in the order that decides ties, and what each step costs."""


class CostScale:
    """Make one integer of rank, wire latency and hops that compares as the three of them do, and adds up exactly.

    `latencies` are those of all wires in ns: no path is longer than all of them; `nodes` are more than its hops.
    """

    def __init__(self, latencies: Iterable[float], nodes: int) -> None:
        ratios = [min(ns, LARGEST).as_integer_ratio() for ns in set(latencies)]
        self._units = max((below for _, below in ratios), default=1)
        longest = max((above * (self._units // below) for above, below in ratios), default=0)
        self._hop_bits = (nodes + 1).bit_length()
        self._rank_shift = self._hop_bits + (longest * (nodes + 1)).bit_length()
        #: What was asked for; there are few sorts of wires.
        self._known: dict[tuple[int, float], int] = {}

    def cost(self, rank: int, latency: float) -> int:
        """Return the cost of one hop over a wire of that latency in ns."""
        known = self._known.get((rank, latency))
        if known is None:
            above, below = min(latency, LARGEST).as_integer_ratio()
            known = rank << self._rank_shift | above * (self._units // below) << self._hop_bits | 1
            self._known[rank, latency] = known
        return known


class PathSearch:
    """Search from one node, only as far as it has been asked to.

    `ways` has the steps from each node, None where nobody came by yet: `fill` finds those. `wires` are as many as there
    are at least; they bound how often anything is put in the queue.
    """

    __slots__ = ("_came_from", "_costs", "_fill", "_node_bits", "_put", "_queue", "_reached", "_turn_bits", "_ways")

    def __init__(self, start: int, ways: list[Steps | None], fill: Callable[[int], Steps], wires: int) -> None:
        self._ways = ways
        self._fill = fill
        self._node_bits = len(ways).bit_length()
        self._turn_bits = self._node_bits + (wires + 1).bit_length()
        #: What it costs to get to a node: as far as is known, and for good.
        self._reached: dict[int, int] = {start: 0}
        self._costs: dict[int, int] = {}
        self._came_from: dict[int, int] = {}
        #: A cost, the turn in which it was put here, and a node, in one integer.
        self._queue: list[int] = [start]
        self._put = 0

    def cost(self, goal: int) -> int | None:
        """Return what the path to a node costs, or None when there is none."""
        costs = self._costs
        if goal not in costs and self._queue:
            self._go_to(goal)
        return costs.get(goal)

    def _go_to(self, goal: int) -> None:
        costs, reached, came_from, queue, ways = self._costs, self._reached, self._came_from, self._queue, self._ways
        node_bits, turn_bits, put = self._node_bits, self._turn_bits, self._put
        last = (1 << node_bits) - 1
        while queue:
            entry = heappop(queue)
            node = entry & last
            if node in costs:
                continue
            so_far = costs[node] = entry >> turn_bits
            for neighbour, step in ways[node] or self._fill(node):
                if neighbour in costs:
                    continue
                cost = so_far + step
                known = reached.get(neighbour)
                if known is None or cost < known:
                    reached[neighbour] = cost
                    came_from[neighbour] = node
                    put += 1
                    heappush(queue, cost << turn_bits | put << node_bits | neighbour)
            if node == goal:
                break
        self._put = put

    def path(self, goal: int) -> list[int]:
        """Return the nodes from the start to a goal whose cost has been asked for."""
        came_from, path = self._came_from, [goal]
        while (before := came_from.get(path[-1])) is not None:
            path.append(before)
        path.reverse()
        return path
