"""Which ranks have links of their own to each other: where closed forms hold, which count the messages of a step alone.

A switch joins everyone: each rank has one link to it, which its messages share. On other networks a message that takes
several links shares them with others, and no closed form here says how.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kernbench_ccl.contract import Cost

SHARED: Final = "messages of a step share links of this network, and no form says how they take turns"
"""Why an algorithm has no closed form where ranks that talk to each other have no links of their own."""


def linked(cost: Cost, pairs: Iterable[tuple[int, int]]) -> bool:
    """Whether these pairs of ranks have a link each, or a switch joins all ranks."""
    return cost.network.switched or all(pair in cost.network.linked for pair in pairs)


def around(cost: Cost) -> bool:
    """Whether each rank has a link to the next one, the last to the first: then whoever is the root sees the same."""
    return linked(cost, ((rank, (rank + 1) % cost.world) for rank in range(cost.world)))


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
    everyone = ((a, b) for a in range(cost.world) for b in range(a))
    return cost.world - 1 if linked(cost, everyone) else None
