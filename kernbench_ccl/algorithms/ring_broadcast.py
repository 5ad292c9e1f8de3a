"""Broadcast along a ring, in one direction: a chain that tiles stream through.

The root sends to root + 1, which sends on to root + 2, and so on; the rank before the root is the last.

Closed form: cut into k tiles, the last tile arrives after (N - 1) + (k - 1) steps of a + S/(k b), least for
k = ((N - 2) S/(a b))^1/2: (((N - 2) a)^1/2 + (S/b)^1/2)^2 and a, the latency of one more link.
"""

from __future__ import annotations

import math
from typing import Any

from kernbench_ccl.algorithms import _links, _tree
from kernbench_ccl.algorithms._kinds import ANYWHERE
from kernbench_ccl.algorithms._tiles import meet
from kernbench_ccl.contract import Cost, share
from kernbench_ccl.contract import kernel_args as kernel_args

COLLECTIVE = "broadcast"
TOPO_NAME_TO_KIND = ANYWHERE


def ring_broadcast(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Give every rank the `count` elements of the root."""
    start, end = share(count, n_pe, pe)
    tree = _tree.chain(world, tl.collective.root, rank)
    _tree.broadcast(tl, tree, in_ptr, out_ptr, start, end, lambda: meet(tl, rank, pe, n_pe))


kernel = ring_broadcast


def formula(cost: Cost) -> float | str:
    """Return (((N - 2) a)^1/2 + (S/b)^1/2)^2 + a in ns, or step by step, and at most, (N - 1)(a + S/b)."""
    if not _links.around(cost):
        return _links.SHARED
    wire = cost.nbytes / cost.bandwidth
    hop = cost.hop_of(cost.nbytes)
    stepped = (cost.world - 1) * (hop + wire)
    if not cost.pipeline:
        return stepped
    return min(stepped, (math.sqrt((cost.world - 2) * hop) + math.sqrt(wire)) ** 2 + hop)
