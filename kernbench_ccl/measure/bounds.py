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
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from attrs import field, frozen

from kernbench_ccl.collectives import CallShape, CollectiveKind
from kernbench_ccl.collectives.derived_traffic import derived_traffic
from kernbench_ccl.collectives.traffic import Traffic

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
class RankLinks:
    """The links between `world` ranks, and what follows from them."""

    world: int
    links: tuple[Link, ...]
    _latency: dict[int, dict[int, float]] = field(factory=dict, init=False, repr=False, eq=False)
    _hops: dict[int, dict[int, float]] = field(factory=dict, init=False, repr=False, eq=False)
    _crossing: dict[frozenset[int], float] = field(factory=dict, init=False, repr=False, eq=False)

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
        from_set = frozenset(inside)
        if from_set not in self._crossing:
            self._crossing[from_set] = self._out_of(from_set)
        return self._crossing[from_set]

    def _out_of(self, from_set: frozenset[int]) -> float:
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


def fabric_of(graph: Graph) -> RankLinks:
    """Read the links between the packages of a compiled machine; rank i is SIP i."""
    from kernbench_core.graph import EdgeKind
    from kernbench_core.topology import design_of

    def end(node_id: str) -> int:
        sip = graph.nodes[node_id].sip
        return SWITCH if sip is None else sip

    links = tuple(
        Link(end(edge.src), end(edge.dst), edge.bandwidth, edge.latency)
        for edge in graph.edges.values()
        if edge.kind is EdgeKind.SCALE_UP
    )
    return RankLinks(design_of(graph).sips, links)


def lower_bound(kind: CollectiveKind, fabric: RankLinks, nbytes: int, root: int = 0) -> Bound:
    """Return the largest of the bounds of a collective of `nbytes` (as nccl-tests counts them) over all ranks."""
    world = fabric.world
    if world < 2 or not nbytes:
        return Bound(0.0, "nothing crosses a link")
    call = CallShape(world, world, "sum" if kind.reduces else None, root)
    traffic = derived_traffic(kind, call, nbytes) if kind.traffic is None else kind.traffic(call, float(nbytes))
    return max(_bounds(traffic, fabric), key=lambda bound: bound.ns)


def _bounds(needs: Traffic, fabric: RankLinks) -> Iterator[Bound]:
    ranks = range(fabric.world)
    yield Bound(max((fabric.latency(a, b) for a, b in needs.pairs), default=0.0), "distance")
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
    for inside in cuts(fabric):
        nbytes = needs.cross(inside)
        if nbytes:
            yield Bound(nbytes / fabric.crossing(inside), "cut")
    yield Bound(needs.work(fabric.hops) / fabric.total, "work")


EVERY_CUT = 8
"""Up to so many ranks every cut is looked at."""
NEAR = 64
"""Up to so many ranks the cuts around each of them are looked at."""


def cuts(fabric: RankLinks) -> Iterator[frozenset[int]]:
    """Yield sets of ranks to cut off, each once: of few ranks every one.

    Of many ranks these are runs of neighbours in rank order, what lies in one column of a flat network, the ranks with
    one bit of their numbers set, and, unless there are very many, what is near a rank; and the others of each. Any set
    gives a bound; these hold the tightest ones of the networks that core has, and of most others.
    """
    world = fabric.world
    if world <= EVERY_CUT:
        ranks = range(world)
        yield from (frozenset(inside) for size in range(1, world) for inside in combinations(ranks, size))
        return
    everyone = frozenset(range(world))
    seen: set[frozenset[int]] = {frozenset(), everyone}
    for found in (*_regular(world), *(_near(fabric) if world <= NEAR else ())):
        for inside in (found, everyone - found):
            if inside not in seen:
                seen.add(inside)
                yield inside


def _regular(world: int) -> Iterator[frozenset[int]]:
    """Yield sets of ranks by their numbers: runs, columns, and those with a bit set."""
    for width in range(1, world):
        yield frozenset(range(width))
        if world % width == 0 and width > 1:
            yield from (frozenset(r for r in range(world) if r % width < column) for column in range(1, width))
    yield from (frozenset(r for r in range(world) if r >> bit & 1) for bit in range((world - 1).bit_length()))


def _near(fabric: RankLinks) -> Iterator[frozenset[int]]:
    """Yield the ranks that are no more than so many links from a rank, for every rank and number of links."""
    ranks = range(fabric.world)
    for rank in ranks:
        far = {other: fabric.hops(rank, other) for other in ranks if other != rank}
        for most in sorted(set(far.values())):
            yield frozenset([rank, *(other for other, hops in far.items() if hops <= most)])
