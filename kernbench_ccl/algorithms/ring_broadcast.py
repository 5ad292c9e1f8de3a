"""Broadcast along a ring, in one direction: a chain that tiles stream through.

The root sends to the next rank of the ring, which sends on, and so on; the rank before the root is the last.

Closed form: the first tile of each PE, t bytes together, takes N - 1 links, on each of which it has to be there as a
whole before it goes on; the others follow it: at most (N - 1) a + (N - 2) t/b + S/b.
"""

from typing import Any

from kernbench_ccl.algorithms import _forms, _tree
from kernbench_ccl.algorithms._tiles import meet
from kernbench_ccl.contract import Cost, share

COLLECTIVE = "broadcast"


def ring_broadcast(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Give every rank the `count` elements of the root."""
    start, end = share(count, n_pe, pe)
    tree = _tree.chain(tl.collective.network.ring_order(world), tl.collective.root, rank)
    _tree.broadcast(tl, tree, in_ptr, out_ptr, start, end, lambda: meet(tl, rank, pe, n_pe))


kernel = ring_broadcast


def formula(cost: Cost) -> float | str:
    """Return (N - 1) a + (N - 2) t/b + S/b in ns, t bytes a message of each PE; step by step (N - 1)(a + S/b)."""
    return _forms.chain_time(cost)
