"""Broadcast along a binomial tree: few steps, for short messages.

Counted from the root, rank v gets the data from v without its lowest bit, and sends it to v + 2^k for the bits below
that, the largest first.

Closed form: ceil(log2 N)(a + S/b) for N = 2^k, where no two messages share a link: after k rounds 2^k ranks have taken
part. For other N less: what its messages take one by one (`_stepped`).
"""

from typing import Any

from kernbench_ccl.algorithms import _stepped, _tree
from kernbench_ccl.algorithms._tiles import meet
from kernbench_ccl.contract import Cost, share

COLLECTIVE = "broadcast"


def binomial_tree_broadcast(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Give every rank the `count` elements of the root."""
    start, end = share(count, n_pe, pe)
    tree = _tree.binomial(world, tl.collective.root, rank)
    _tree.broadcast(tl, tree, in_ptr, out_ptr, start, end, lambda: meet(tl, rank, pe, n_pe))


kernel = binomial_tree_broadcast


def formula(cost: Cost) -> float | str:
    """Return the time of the messages of the tree (`_stepped`) in ns: ceil(log2 N)(a + S/b) for N = 2^k."""
    return _stepped.tree_time(cost, [lambda rank: _tree.binomial(cost.world, 0, rank)], [_stepped.DOWN])
