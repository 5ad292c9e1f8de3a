"""Reduce along a ring, in one direction: a chain in which every rank adds its tiles.

The rank after the root sends to the next one, which adds its own and sends on, and so on; the root is the last.

Closed form: the first tile of each PE, t bytes together, takes N - 1 links, on each of which it has to be there as a
whole before it goes on; the others follow it: at most (N - 1) a + (N - 2) t/b + S/b.
"""

from typing import Any

from kernbench_ccl.algorithms import _forms, _tree
from kernbench_ccl.algorithms._tiles import meet
from kernbench_ccl.contract import Cost, share

COLLECTIVE = "reduce"


def ring_reduce(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Reduce `count` elements of every rank and give the root the result."""
    start, end = share(count, n_pe, pe)
    tree = _tree.chain(tl.collective.network.ring_order(world)[::-1], tl.collective.root, rank)
    _tree.reduce(tl, tree, in_ptr, out_ptr, scratch_ptr, start, end, lambda: meet(tl, rank, pe, n_pe))


kernel = ring_reduce


def scratch_count(count: int, world: int) -> int:
    """Return the elements of one vector: step by step, partial sums wait there."""
    return count


def formula(cost: Cost) -> float | str:
    """Return (N - 1) a + (N - 2) t/b + S/b in ns, t bytes a message of each PE; step by step (N - 1)(a + S/b)."""
    return _forms.chain_time(cost)
