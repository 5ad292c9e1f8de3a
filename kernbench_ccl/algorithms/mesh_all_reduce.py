"""All-reduce on a 2-D mesh: one half of the vector along rows first, the other along columns first.

A reduce-scatter along the first dimension (X places), an all-reduce along the second (Y), an all-gather along the
first. A row (or column) is a ring whose last rank sends to its first over the links that lead back, which are free
otherwise: each link carries one message per step in each direction. So a second direction would gain nothing.

The parts are dealt to the PEs: 2 of them take part for all ways to be used.

Closed form: each part of s = S/2 bytes takes 2(X - 1)(a + s/(X b)) + 2(Y - 1)(a + s/(X Y b)), and 2(X - 2) a + 2(Y -
2) a more for the ways back.
"""

from typing import Any

from kernbench_ccl.algorithms import _grid
from kernbench_ccl.algorithms._ring import RingWork
from kernbench_ccl.algorithms._tiles import run
from kernbench_ccl.contract import MESH_2D, Cost, share

COLLECTIVE = "all_reduce"
TOPO_NAME_TO_KIND = {"mesh_2d": MESH_2D}
WAYS = 2


def mesh_all_reduce(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Reduce `count` elements of every rank and give every rank the result."""
    start, end = share(count, n_pe, pe)
    way = _grid.way_of(tl.collective.network.grid(world), rank, pe, n_pe, both_ways=False)
    stream = _grid.all_reduce(RingWork(tl), [way.first, way.second], in_ptr, out_ptr, start, end)
    run(tl, rank, pe, n_pe, [stream])


kernel = mesh_all_reduce


def formula(cost: Cost) -> float | str:
    """Return the time of the slower part, in ns."""
    return _grid.all_reduce_time(cost, ways=WAYS, wraps=False)
