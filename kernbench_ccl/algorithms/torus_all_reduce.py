"""All-reduce on a 2-D torus: quarters of the vector, along rows or columns first, each in both directions.

A reduce-scatter along the first dimension (X places), an all-reduce along the second (Y), an all-gather along the
first. Rows and columns are rings. A part uses the links of one dimension and direction at a time, so that four parts
keep all four links of a rank busy where the torus is square.

The parts are dealt to the PEs: 4 of them take part for all ways to be used.

Closed form: each part of s = S/4 bytes takes 2(X - 1)(a + s/(X b)) + 2(Y - 1)(a + s/(X Y b)).
"""

from typing import Any

from kernbench_ccl.algorithms import _grid
from kernbench_ccl.algorithms._ring import RingWork
from kernbench_ccl.algorithms._tiles import run
from kernbench_ccl.contract import TORUS_2D, Cost, share

COLLECTIVE = "all_reduce"
TOPO_NAME_TO_KIND = {"torus_2d": TORUS_2D}
WAYS = 4


def torus_all_reduce(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Reduce `count` elements of every rank and give every rank the result."""
    start, end = share(count, n_pe, pe)
    way = _grid.way_of(tl.collective.network.grid(world), rank, pe, n_pe, both_ways=True)
    stream = _grid.all_reduce(RingWork(tl), [way.first, way.second], in_ptr, out_ptr, start, end)
    run(tl, rank, pe, n_pe, [stream])


kernel = torus_all_reduce


def formula(cost: Cost) -> float | str:
    """Return the time of the slower part, in ns."""
    return _grid.all_reduce_time(cost, ways=WAYS, wraps=True)
