"""All-gather on a 2-D torus: quarters of each part, along rows or columns first, each in both directions.

An all-gather along the first dimension (X places), then one of what came along the second (Y). Rows and columns are
rings. A part uses the links of one dimension and direction at a time, so that four parts keep all four links of a
rank busy where the torus is square.

The parts are dealt to the PEs: 4 of them take part for all ways to be used.

Closed form: each part of s = S/4 bytes takes (X - 1)(a + s/(X Y b)) + (Y - 1)(a + s/(Y b)).
"""

from typing import Any

from kernbench_ccl.algorithms import _grid
from kernbench_ccl.algorithms._ring import RingWork
from kernbench_ccl.algorithms._tiles import run
from kernbench_ccl.contract import TORUS_2D, Cost, share

COLLECTIVE = "all_gather"
TOPO_NAME_TO_KIND = {"torus_2d": TORUS_2D}
WAYS = 4


def torus_all_gather(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Give every rank the `count` elements of each, in rank order."""
    start, end = share(count, n_pe, pe)
    way = _grid.way_of(tl.collective.network.grid(world), rank, pe, n_pe, both_ways=True)
    run(tl, rank, pe, n_pe, [_grid.all_gather(RingWork(tl), way, in_ptr, out_ptr, start, end, count)])


kernel = torus_all_gather


def formula(cost: Cost) -> float | str:
    """Return the time of the slower part, in ns."""
    return _grid.gather_time(cost, ways=WAYS, wraps=True)
