"""What collective algorithms send in each step, and how long a step takes on links: by networkx, without kernbench.

A step is whole messages (source, target, bytes) that begin together; the next one begins when all of them are there. A
message takes the shortest way; messages on one link, in one direction, follow each other.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import networkx as nx

Message = tuple[int, int, float]
Step = list[Message]
HUB = "switch"


def network(name: str, world: int) -> nx.Graph:
    """Return ranks, or ranks and a switch, and their links."""
    if name == "fully_connected":
        return nx.complete_graph(world)
    if name == "switch":
        return nx.Graph([(rank, HUB) for rank in range(world)])
    if name == "ring":
        return nx.path_graph(2) if world == 2 else nx.cycle_graph(world)
    height = next(rows for rows in range(int(world**0.5), 0, -1) if world % rows == 0)
    width = world // height
    grid = nx.grid_2d_graph(height, width, periodic=name == "torus_2d")
    return nx.relabel_nodes(grid, {(row, column): row * width + column for row, column in grid})


def links_of(algorithm: str, name: str, world: int) -> nx.Graph:
    """Return ranks and links as an algorithm numbers the ranks: to one that goes round, a grid is a ring.

    Every torus has a way round by its links, a mesh where it has rows, columns and an even number of ranks.
    """
    graph = network(name, world)
    if algorithm.startswith("ring_") and name in ("mesh_2d", "torus_2d") and world > 2:
        corners = min(dict(graph.degree).values()) > 1
        if name == "torus_2d" or (corners and world % 2 == 0):
            return nx.cycle_graph(world)
    return graph


def shared(graph: nx.Graph, steps: list[Step]) -> bool:
    """Whether a message has no link for itself, and no switch, to its target."""
    return HUB not in graph and any(not graph.has_edge(source, target) for step in steps for source, target, _ in step)


def time_of(graph: nx.Graph, steps: list[Step], bandwidth: float, latency: float, *, stores: bool = False) -> float:
    """Return the ns of all steps over links of so many GB/s and ns; a switch that `stores` has messages in whole."""
    return sum(_step_time(graph, step, bandwidth, latency, stores) for step in steps)


def _step_time(graph: nx.Graph, step: Step, bandwidth: float, latency: float, stores: bool) -> float:
    ways = [_way(graph, source, target) for source, target, _ in step]
    load: defaultdict[object, float] = defaultdict(float)
    for way, (_, _, nbytes) in zip(ways, step, strict=True):
        for link in way:
            load[link] += nbytes
    held = [nbytes * stores * (len(way) - 1) for way, (_, _, nbytes) in zip(ways, step, strict=True)]
    return max(
        len(way) * latency + (max(load[link] for link in way) + whole) / bandwidth
        for way, whole in zip(ways, held, strict=True)
    )


def _way(graph: nx.Graph, source: int, target: int) -> list[tuple[object, object]]:
    """Return the links of a shortest way."""
    if graph.has_edge(source, target):
        return [(source, target)]
    return list(pairwise(nx.shortest_path(graph, source, target)))


def _around(world: int, nbytes: float, by: int = 1) -> Step:
    return [(rank, (rank + by) % world, nbytes) for rank in range(world)]


def _ring(world: int, nbytes: float, rounds: int, both: bool = False) -> list[Step]:
    part = nbytes / world
    if not both or world == 2:
        return [_around(world, part)] * (rounds * (world - 1))
    return [_around(world, part / 2) + _around(world, part / 2, -1)] * (rounds * (world - 1))


def _pairs(world: int, nbytes: float) -> Step:
    return [(a, b, nbytes) for a in range(world) for b in range(world) if a != b]


def _halving(world: int, nbytes: float) -> list[Step]:
    """Return the steps of a reduce-scatter by halving among the largest power of two; others fold first."""
    members = 1 << (world.bit_length() - 1)
    extra = world - members
    ranks = [2 * m + 1 for m in range(extra)] + list(range(2 * extra, world))
    folding: list[Step] = [[(2 * m, 2 * m + 1, nbytes) for m in range(extra)]] if extra else []
    steps = []
    distance = members // 2
    while distance:
        steps.append([(ranks[m], ranks[m ^ distance], nbytes * distance / members) for m in range(members)])
        distance //= 2
    return [*folding, *steps]


def _back(steps: list[Step]) -> list[Step]:
    return [[(b, a, n) for a, b, n in step] for step in reversed(steps)]


def _barrier(world: int, nbytes: float) -> list[Step]:
    return [_around(world, 0.0, 1 << i) for i in range(math.ceil(math.log2(world)))]


STEPS: dict[str, Callable[[int, float], list[Step]]] = {
    "ring_all_reduce": lambda n, s: _ring(n, s, 2),
    "ring_all_gather": lambda n, s: _ring(n, s, 1),
    "ring_reduce_scatter": lambda n, s: _ring(n, s, 1),
    "ring_bidirectional_all_reduce": lambda n, s: _ring(n, s, 2, both=True),
    "ring_bidirectional_all_gather": lambda n, s: _ring(n, s, 1, both=True),
    "ring_bidirectional_reduce_scatter": lambda n, s: _ring(n, s, 1, both=True),
    "ring_broadcast": lambda n, s: [[(rank, rank + 1, s)] for rank in range(n - 1)],
    "ring_reduce": lambda n, s: [[(rank, (rank + 1) % n, s)] for rank in range(1, n)],
    "direct_all_reduce": lambda n, s: [_pairs(n, s / n)] * 2,
    "direct_all_gather": lambda n, s: [_pairs(n, s / n)],
    "direct_reduce_scatter": lambda n, s: [_pairs(n, s / n)],
    "direct_all_to_all": lambda n, s: [_pairs(n, s / n)],
    "direct_gather": lambda n, s: [[(rank, 0, s / n) for rank in range(1, n)]],
    "direct_scatter": lambda n, s: [[(0, rank, s / n) for rank in range(1, n)]],
    "direct_broadcast": lambda n, s: [[(0, rank, s) for rank in range(1, n)]],
    "direct_reduce": lambda n, s: [[(rank, 0, s) for rank in range(1, n)]],
    "direct_send_recv": lambda n, s: [_around(n, s)],
    "pairwise_all_to_all": lambda n, s: [_around(n, s / n, i) for i in range(1, n)],
    "halving_doubling_reduce_scatter": _halving,
    "halving_doubling_all_gather": lambda n, s: _back(_halving(n, s)),
    "halving_doubling_all_reduce": lambda n, s: [*_halving(n, s), *_back(_halving(n, s))],
    "dissemination_barrier": _barrier,
}
"""The steps of an algorithm of so many ranks and bytes, as nccl counts them; rank 0 is the root."""


def powers_of_two(name: str) -> bool:
    """Whether an algorithm does powers of two alone."""
    return name in ("halving_doubling_reduce_scatter", "halving_doubling_all_gather")


def cases(worlds: Iterable[int]) -> Iterator[tuple[str, int]]:
    """Yield every algorithm and number of ranks that it does."""
    return ((name, n) for n in worlds for name in STEPS if not powers_of_two(name) or not n & (n - 1))
