"""Broadcast along two binary trees at the same time: few steps and full bandwidth.

The root sends half of the vector to the top of one tree of all other ranks, and half to that of another; every rank
has children in one of them at most. PE p takes the first tree if p is even, else the second, so that each tree moves
half of the vector. With one PE there is one tree.

Closed form: the root sends S, and so does every rank with children, twice S/2; a tile of t bytes passes
floor(log2(N - 1)) + 1 levels, and on each has to be there as a whole before it goes on: at most
(floor(log2(N - 1)) + 1)(a + t/b) + S/b. None on a switch, where the trees share the links of a rank.

Source: Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009.
"""

from typing import Any

from kernbench_ccl.algorithms import _stepped, _tree
from kernbench_ccl.algorithms._tiles import meet
from kernbench_ccl.contract import Cost, share

COLLECTIVE = "broadcast"
WAYS = 2


def double_binary_tree_broadcast(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Give every rank the `count` elements of the root."""
    start, end = share(count, n_pe, pe)
    tree = _tree.double_binary_from(world, tl.collective.root, rank, pe % 2)
    _tree.broadcast(tl, tree, in_ptr, out_ptr, start, end, lambda: meet(tl, rank, pe, n_pe, groups=2))


kernel = double_binary_tree_broadcast


def formula(cost: Cost) -> float | str:
    """Return d(a + t/b) + S/b in ns, d levels, t bytes a message; step by step, and at most, as `_stepped` has it."""
    return _stepped.rooted_pair_time(cost, _stepped.DOWN)
