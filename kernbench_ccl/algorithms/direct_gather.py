"""Gather straight to the root.

The root receives a tile of every rank in turn, then the next tile of each.

Closed form: the root's links carry N - 1 parts of S/N, each its own when it has that many: a + S/(N b) fully connected,
a + (N - 1)/N S/b on a switch.
"""

from typing import Any

from kernbench_ccl.algorithms import _direct, _forms
from kernbench_ccl.algorithms._direct import peers as peers
from kernbench_ccl.algorithms._tiles import Segment, copy
from kernbench_ccl.contract import Cost, share

COLLECTIVE = "gather"


def direct_gather(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Give the root the `count` elements of each rank, in rank order."""
    start, end = share(count, n_pe, pe)
    root, own = tl.collective.root, Segment(start, rank * count + start, end - start)
    if rank != root:
        _direct.spread(tl, in_ptr, [root], [own])
        return
    copy(tl, in_ptr, out_ptr, own)
    others = [(root + i) % world for i in range(1, world)]
    parts = [Segment(start, other * count + start, end - start) for other in others]
    if others:
        _direct.collect(tl, others, parts, lambda arrived, x: tl.store(out_ptr + arrived.place, x))


kernel = direct_gather


def formula(cost: Cost) -> float | str:
    """Return a + (N - 1)/N S/(l b) in ns, l = N - 1 links of the root or one; S is the root's whole vector."""
    return _forms.root_time(cost, cost.hop_of(cost.part), (cost.world - 1) / cost.world)
