"""Broadcast straight from the root to everyone.

The root sends each tile to every rank in turn.

Closed form: the root's links carry the vector N - 1 times: a + S/b fully connected, a + (N - 1) S/b on a switch.
"""

from typing import Any

from kernbench_ccl.algorithms import _direct, _forms
from kernbench_ccl.algorithms._tiles import Segment, copy
from kernbench_ccl.contract import Cost, share

COLLECTIVE = "broadcast"


def direct_broadcast(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Give every rank the `count` elements of the root."""
    start, end = share(count, n_pe, pe)
    root, own = tl.collective.root, Segment(start, start, end - start)
    if rank != root:
        _direct.collect(tl, [root], [own], lambda arrived, x: tl.store(out_ptr + arrived.place, x))
        return
    copy(tl, in_ptr, out_ptr, own)
    others = [(root + i) % world for i in range(1, world)]
    if others:
        _direct.spread(tl, in_ptr, others, [own] * len(others))


kernel = direct_broadcast


def formula(cost: Cost) -> float | str:
    """Return a + (N - 1) S/(l b) in ns, l = N - 1 links of the root or one."""
    return _forms.root_time(cost, _forms.hop_of_turns(cost, cost.nbytes), cost.world - 1)
