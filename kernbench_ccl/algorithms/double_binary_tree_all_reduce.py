"""All-reduce along two binary trees at the same time: few steps and full bandwidth.

Partial sums go up to the root and the result comes down, tile by tile. Every rank has children in one of the two
trees at most, so that all links are used alike. PE p takes the first tree if p is even, else the second, so that each
tree moves half of the vector. With one PE there is one tree.

Closed form: a tile of t bytes goes up and down floor(log2 N) levels; on each it has to be there as a whole before it
goes on. Where each rank has children it receives twice S/2 on the way up and sends that on the way down: at most
2 floor(log2 N)(a + t/b) + 2 S/b. None on a switch, where the trees share the links of a rank.

Source: Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009.
"""

from typing import Any

from kernbench_ccl.algorithms import _stepped, _tree
from kernbench_ccl.algorithms._tiles import meet
from kernbench_ccl.contract import Cost, share

COLLECTIVE = "all_reduce"
WAYS = 2


def double_binary_tree_all_reduce(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Reduce `count` elements of every rank and give every rank the result."""
    start, end = share(count, n_pe, pe)
    tree = _tree.double_binary(world, rank, pe % 2)
    _tree.all_reduce(tl, tree, in_ptr, out_ptr, start, end, lambda: meet(tl, rank, pe, n_pe, groups=2))


kernel = double_binary_tree_all_reduce


def formula(cost: Cost) -> float | str:
    """Return 2 floor(log2 N)(a + t/b) + 2 S/b in ns, t bytes a message; step by step, and at most, as `_stepped`."""
    stepped = _stepped.tree_time(cost, [_place(cost, 0), _place(cost, 1)], [_stepped.UP, _stepped.DOWN])
    if isinstance(stepped, str) or not cost.pipeline:
        return stepped
    return min(stepped, _stepped.streamed(cost, 2 * (cost.world.bit_length() - 1), 2 * cost.nbytes))


def _place(cost: Cost, which: int) -> _stepped.TreeAt:
    return lambda rank: _tree.double_binary(cost.world, rank, which)
