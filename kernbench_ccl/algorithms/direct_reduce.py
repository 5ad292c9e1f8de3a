"""Reduce straight to the root.

The root receives a tile of every rank in turn and adds it to its own.

Closed form: the root's links carry the vector N - 1 times: a + S/b fully connected, a + (N - 1) S/b on a switch.
"""

from typing import Any

from kernbench_ccl.algorithms import _direct, _forms
from kernbench_ccl.algorithms._direct import peers as peers
from kernbench_ccl.algorithms._tiles import Segment
from kernbench_ccl.contract import Cost, share

COLLECTIVE = "reduce"


def direct_reduce(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Reduce `count` elements of every rank and give the root the result."""
    start, end = share(count, n_pe, pe)
    root, own = tl.collective.root, Segment(start, start, end - start)
    if rank != root:
        _direct.spread(tl, in_ptr, [root], [own])
        return
    _direct.reduce(tl, in_ptr, out_ptr, [(root + i) % world for i in range(1, world)], own)


kernel = direct_reduce


def formula(cost: Cost) -> float | str:
    """Return a + (N - 1) S/(l b) in ns, l = N - 1 links of the root or one."""
    return _forms.root_time(cost, cost.hop_of(cost.nbytes), cost.world - 1)
