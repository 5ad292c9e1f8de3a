"""Closed forms that several algorithms have, and where forms hold: they count the messages of a step alone.

So ranks that talk to each other must have links of their own. A switch joins everyone: each rank has one link to it,
which its messages share. On other networks a message that takes several links shares them with others, and no closed
form here says how.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise, permutations
from typing import Final

from kernbench_ccl.contract import Cost

SHARED: Final = "messages of a step share links of this network, and no form says how they take turns"
"""Why an algorithm has no closed form where ranks that talk to each other have no links of their own."""


def linked(cost: Cost, pairs: Iterable[tuple[int, int]]) -> bool:
    """Whether these pairs of ranks have a link each, or a switch joins all ranks."""
    return cost.network.switched or all(pair in cost.network.linked for pair in pairs)


def around(cost: Cost, order: Sequence[int] | None = None) -> bool:
    """Whether each rank has a link to the next of an order (default: by number): then roots all see the same."""
    order = range(cost.world) if order is None else order
    return linked(cost, pairwise((*order, order[0])))


def ringed(cost: Cost) -> bool:
    """Whether each rank has a link to the next one of the ring that the network has."""
    return around(cost, cost.network.ring_order(cost.world))


def hop_of_turns(cost: Cost, nbytes: float) -> float:
    """Return the latency of the last of blocks of `nbytes` that one rank sends to all others in turns, tile by tile.

    A switch that stores has more time for a packet while the rank sends the others theirs: what counts is the last
    tile, or the packet before it, where the last tiles of all are sent sooner than that is passed on.
    """
    own = nbytes / cost.pes
    last = own % cost.message
    if own <= cost.message or not last:
        return cost.hop_of(nbytes)
    before = min(cost.stored, cost.message) - (cost.world - 2) * last * cost.pes
    return cost.hop_of(max(last, before) * cost.pes)


def links_of_a_rank(cost: Cost) -> int | None:
    """Return over how many links a rank sends to all others: one to each, or one to a switch; None elsewhere."""
    if cost.network.switched:
        return 1
    return cost.world - 1 if linked(cost, permutations(range(cost.world), 2)) else None


def ring_time(cost: Cost, *, passes: int, both_ways: bool = False) -> float | str:
    """Return the time of `passes` around a ring in ns: (N - 1)(a + S/(N b)) each.

    Both ways it is S/(2 N b): halves of each part go in opposite directions. Two ranks have one link and take one
    direction; on a switch both halves share a rank's link.
    """
    if not ringed(cost):
        return SHARED
    halves = 2 if both_ways and cost.world > 2 else 1
    if halves == 2 and not around(cost, cost.network.ring_order(cost.world)[::-1]):
        return SHARED
    directions = 1 if cost.network.switched else halves
    wire = cost.nbytes / (directions * cost.world * cost.bandwidth)
    return passes * (cost.world - 1) * (cost.hop_of(cost.part / halves) + wire)


def chain_time(cost: Cost) -> float | str:
    """Return (N - 1) a + (N - 2) t/b + S/b in ns, t bytes a message of each PE; step by step (N - 1)(a + S/b)."""
    if not ringed(cost):
        return SHARED
    tile = min(cost.message * cost.pes, cost.nbytes) if cost.pipeline else cost.nbytes
    return (cost.world - 1) * cost.hop_of(cost.nbytes) + ((cost.world - 2) * tile + cost.nbytes) / cost.bandwidth


def exchange_time(cost: Cost, steps: int = 1) -> float | str:
    """Return a + (N - 1) S/(N l b) a step in ns, l = N - 1 links of a rank or one."""
    links = links_of_a_rank(cost)
    if links is None:
        return SHARED
    return steps * (cost.hop_of(cost.part) + (cost.world - 1) * cost.nbytes / (cost.world * links * cost.bandwidth))


def root_time(cost: Cost, hop: float, vectors: float) -> float | str:
    """Return `hop` and the time of so many vectors of S bytes on the l = N - 1 links of the root, or one, in ns."""
    links = links_of_a_rank(cost)
    return SHARED if links is None else hop + vectors * cost.nbytes / (links * cost.bandwidth)


def doubling_time(cost: Cost) -> float | str:
    """Return log2(N) a + (N - 1)/N S/b in ns: step i is with the rank that differs in bit i; S is all parts."""
    steps = cost.world.bit_length() - 1
    if not linked(cost, ((rank, rank ^ 1 << i) for i in range(steps) for rank in range(cost.world))):
        return SHARED
    return steps * cost.hop_of(cost.part) + (cost.world - 1) / cost.world * cost.nbytes / cost.bandwidth
