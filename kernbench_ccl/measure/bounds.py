"""The time that no algorithm can beat: lower bounds of a collective on the links that join the ranks.

A bound counts only what must cross links, and only their wires: bandwidth and latency, no header, no node, no memory.
With n bytes per link and direction in `Link.bandwidth` B/ns these hold for every schedule:

- *injection*: what a rank must send or receive, over the bandwidth of all its links, after the latency of the shortest
  of them (nothing arrives before);
- *cut*: what must cross from a set of ranks to the others, over the bandwidth of the links between them;
- *work*: every message takes at least the hops of a shortest path, and all links together carry so much a ns;
- *distance*: the latency of the farthest pair that depends on each other.

S is the size as nccl-tests counts it (see `collectives`), N the number of ranks. All-reduce needs 2(N - 1) transfers of
every element (gossip with one-way calls), reduce-scatter and all-gather N - 1.

Source: Patarasso and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009; Chan et al.,
"Collective communication: theory, practice, and experience", 2007.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

if TYPE_CHECKING:
    from kernbench_core.graph import Graph

SWITCH = -1
"""What stands for a switch where a rank is named."""


@frozen
class Link:
    """One direction of a scale-up link between two ranks (or `SWITCH`): bandwidth in B/ns, latency in ns."""

    source: int
    target: int
    bandwidth: float
    latency: float


@frozen
class Bound:
    """A lower bound in ns, and which argument gives it."""

    ns: float
    reason: str


@frozen
class Fabric:
    """The links between `world` ranks, and what follows from them."""

    world: int
    links: tuple[Link, ...]
    _latency: dict[int, dict[int, float]] = field(factory=dict, init=False, repr=False, eq=False)
    _hops: dict[int, dict[int, float]] = field(factory=dict, init=False, repr=False, eq=False)

    def out(self, rank: int) -> float:
        """Return the bandwidth of all links that leave a rank, in B/ns."""
        return sum(link.bandwidth for link in self.links if link.source == rank)

    def into(self, rank: int) -> float:
        """Return the bandwidth of all links that reach a rank, in B/ns."""
        return sum(link.bandwidth for link in self.links if link.target == rank)

    @property
    def total(self) -> float:
        """The bandwidth of all links, in B/ns."""
        return sum(link.bandwidth for link in self.links)

    def latency(self, source: int, target: int) -> float:
        """Return the latency of the quickest path between two ranks, in ns."""
        return self._from(source, self._latency, lambda link: link.latency).get(target, 0.0)

    def hops(self, source: int, target: int) -> int:
        """Return the links of the shortest path between two ranks."""
        return int(self._from(source, self._hops, lambda link: 1.0).get(target, 0.0))

    def nearest(self, rank: int, *, inbound: bool) -> float:
        """Return the least latency of a path to (or from) any other rank, in ns."""
        others = [other for other in range(self.world) if other != rank]
        return min(self.latency(other, rank) if inbound else self.latency(rank, other) for other in others)

    def crossing(self, inside: Iterable[int]) -> float:
        """Return the bandwidth from a set of ranks to all others, in B/ns; a switch is put where it is narrower."""
        from_set = set(inside)
        direct = sum(
            link.bandwidth
            for link in self.links
            if link.source in from_set and link.target not in from_set and link.target != SWITCH
        )
        up = sum(link.bandwidth for link in self.links if link.source in from_set and link.target == SWITCH)
        down = sum(link.bandwidth for link in self.links if link.source == SWITCH and link.target not in from_set)
        return direct + min(up, down)

    def _from(self, source: int, known: dict[int, dict[int, float]], cost: Callable[[Link], float]) -> dict[int, float]:
        """Return the least cost of a path from `source` to each rank (Dijkstra)."""
        if source in known:
            return known[source]
        leaving: dict[int, list[Link]] = {}
        for link in self.links:
            leaving.setdefault(link.source, []).append(link)
        found: dict[int, float] = {}
        queue = [(0.0, source)]
        while queue:
            reached, at = heapq.heappop(queue)
            if at in found:
                continue
            found[at] = reached
            for link in leaving.get(at, ()):
                heapq.heappush(queue, (reached + cost(link), link.target))
        known[source] = found
        return found


def fabric_of(graph: Graph) -> Fabric:
    """Read the links between the packages of a compiled machine; rank i is SIP i."""
    from kernbench_core.graph import EdgeKind
    from kernbench_core.topology.design import design_of

    def end(node_id: str) -> int:
        sip = graph.nodes[node_id].sip
        return SWITCH if sip is None else sip

    links = tuple(
        Link(end(edge.src), end(edge.dst), edge.bandwidth, edge.latency)
        for edge in graph.edges.values()
        if edge.kind is EdgeKind.SCALE_UP
    )
    return Fabric(design_of(graph).sips, links)


def lower_bound(collective: str, fabric: Fabric, nbytes: int, root: int = 0) -> Bound:
    """Return the largest of the bounds of a collective of `nbytes` (as nccl-tests counts them) over all ranks."""
    world = fabric.world
    if world < 2 or not nbytes:
        return Bound(0.0, "nothing crosses a link")
    needs = _needs(collective, world, float(nbytes), root)
    return max(_bounds(needs, fabric), key=lambda bound: bound.ns)


@frozen
class _Needs:
    """What a collective must move, in bytes, and between whom."""

    pairs: tuple[tuple[int, int], ...]
    send: Callable[[int], float]
    receive: Callable[[int], float]
    cross: Callable[[frozenset[int]], float]
    work: Callable[[Fabric], float] = lambda fabric: 0.0
    everywhere: float = 0.0
    """Bytes that all ranks together must send."""


def _bounds(needs: _Needs, fabric: Fabric) -> Iterator[Bound]:
    ranks = range(fabric.world)
    yield Bound(max(fabric.latency(a, b) for a, b in needs.pairs), "distance")
    for rank in ranks:
        for nbytes, rate, inbound in (
            (needs.send(rank), fabric.out(rank), False),
            (needs.receive(rank), fabric.into(rank), True),
        ):
            if nbytes:
                yield Bound(fabric.nearest(rank, inbound=inbound) + nbytes / rate, "injection")
    if needs.everywhere:
        quickest = min(fabric.nearest(rank, inbound=False) for rank in ranks)
        yield Bound(quickest + needs.everywhere / sum(map(fabric.out, ranks)), "injection")
    for inside in cuts(fabric.world):
        nbytes = needs.cross(inside)
        if nbytes:
            yield Bound(nbytes / fabric.crossing(inside), "cut")
    yield Bound(needs.work(fabric) / fabric.total, "work")


def cuts(world: int) -> Iterator[frozenset[int]]:
    """Yield sets of ranks to cut off: runs of neighbours in rank order, and what lies in one column of a flat network.

    Any set gives a bound; these hold the tightest ones of the networks that there are.
    """
    seen: set[frozenset[int]] = set()
    for width in range(1, world):
        runs: list[Sequence[int]] = [range(width)]
        if world % width == 0 and width > 1:
            runs += [[r for r in range(world) if r % width < column] for column in range(1, width)]
        for run in runs:
            for inside in (frozenset(run), frozenset(range(world)) - frozenset(run)):
                if inside not in seen:
                    seen.add(inside)
                    yield inside


def _needs(collective: str, world: int, size: float, root: int) -> _Needs:
    """Say what must move, by the name of the collective; `size` is S."""
    ranks = range(world)
    part, whole = size / world, (world - 1) * (size / world)
    every = tuple((a, b) for a in ranks for b in ranks if a != b)
    from_root = tuple((root, b) for b in ranks if b != root)
    to_root = tuple((b, root) for b in ranks if b != root)
    if collective == "all_reduce":
        return _Needs(every, _of(size), _of(size), lambda inside: size, everywhere=2 * (world - 1) * size)
    if collective == "all_gather":
        return _Needs(
            every, _of(part), _of(whole), lambda inside: len(inside) * part, everywhere=(world - 1) * size
        )
    if collective == "reduce_scatter":
        return _Needs(
            every, _of(whole), _of(part), lambda inside: (world - len(inside)) * part, everywhere=(world - 1) * size
        )
    if collective == "broadcast":
        rest = _of(size, *(b for _, b in from_root))
        return _Needs(from_root, _of(size, root), rest, lambda inside: size if root in inside else 0.0)
    if collective == "reduce":
        rest = _of(size, *(a for a, _ in to_root))
        return _Needs(to_root, rest, _of(size, root), lambda inside: 0.0 if root in inside else size)
    if collective == "all_to_all":
        return evolve(_messages(every, part), cross=lambda inside: len(inside) * (world - len(inside)) * part)
    if collective == "scatter":
        return _messages(from_root, part)
    if collective == "gather":
        return _messages(to_root, part)
    if collective == "send_recv":
        return _messages(tuple((rank, (rank + 1) % world) for rank in ranks), size)
    return _Needs(every, _of(0.0), _of(0.0), lambda inside: 0.0)


def _of(nbytes: float, *ranks: int) -> Callable[[int], float]:
    """Return a function that gives `nbytes` for these ranks (for all, without any) and 0 for others."""
    return lambda rank: nbytes if not ranks or rank in ranks else 0.0


def _messages(pairs: Sequence[tuple[int, int]], nbytes: float) -> _Needs:
    """Return the needs of a message of `nbytes` from the first to the second of each pair."""
    sent, got = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    return _Needs(
        tuple(pairs),
        lambda rank: nbytes * sent[rank],
        lambda rank: nbytes * got[rank],
        lambda inside: nbytes * sum(a in inside and b not in inside for a, b in pairs),
        lambda fabric: nbytes * sum(fabric.hops(a, b) for a, b in pairs),
    )
