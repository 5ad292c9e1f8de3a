"""Scatter straight from the root.

The root sends a tile to every rank in turn, then the next tile of each.

Closed form: the root's links carry N - 1 parts of S/N, each its own when it has that many: a + S/(N b) fully connected,
a + (N - 1)/N S/b on a switch.
"""

from typing import Any

from kernbench_ccl.algorithms import _direct, _forms
from kernbench_ccl.algorithms._tiles import Segment, copy
from kernbench_ccl.contract import Cost, share

COLLECTIVE = "scatter"


def direct_scatter(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Give every rank its `count` elements of the root's vector."""
    start, end = share(count, n_pe, pe)
    root, own = tl.collective.root, Segment(rank * count + start, start, end - start)
    if rank != root:
        _direct.collect(tl, [root], [own], lambda arrived, x: tl.store(out_ptr + arrived.place, x))
        return
    copy(tl, in_ptr, out_ptr, own)
    others = [(root + i) % world for i in range(1, world)]
    parts = [Segment(other * count + start, start, end - start) for other in others]
    if others:
        _direct.spread(tl, in_ptr, others, parts)


kernel = direct_scatter


def formula(cost: Cost) -> float | str:
    """Return a + (N - 1)/N S/(l b) in ns, l = N - 1 links of the root or one; S is the root's whole vector."""
    return _forms.root_time(cost, _forms.hop_of_turns(cost, cost.part), (cost.world - 1) / cost.world)
