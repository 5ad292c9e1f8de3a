"""Reduce-scatter on a 2-D torus: quarters of each part, rows or columns first, in both directions.

A reduce-scatter along the first dimension (X places) of what the ranks of each place need, then one along the second
(Y). Rows and columns are rings. A part uses the links of one dimension and direction at a time, so that four parts
keep all four links of a rank busy where the torus is square.

The parts are dealt to the PEs: 4 of them take part for all ways to be used.

Closed form: each part of s = S/4 bytes takes (X - 1)(a + s/(X b)) + (Y - 1)(a + s/(X Y b)).
"""

from typing import Any

from kernbench_ccl.algorithms import _grid
from kernbench_ccl.algorithms._ring import RingWork
from kernbench_ccl.algorithms._tiles import run
from kernbench_ccl.contract import TORUS_2D, Cost, share

COLLECTIVE = "reduce_scatter"
TOPO_NAME_TO_KIND = {"torus_2d": TORUS_2D}
WAYS = 4


def torus_reduce_scatter(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Reduce what all ranks have for each rank, `count` elements, and give it to that rank."""
    start, end = share(count, n_pe, pe)
    way = _grid.way_of(tl.collective.network.grid(world), rank, pe, n_pe, both_ways=True)
    run(tl, rank, pe, n_pe, [_grid.reduce_scatter(RingWork(tl), way, in_ptr, out_ptr, scratch_ptr, start, end, count)])


kernel = torus_reduce_scatter


def scratch_count(count: int, world: int) -> int:
    """Return the elements of every rank's part, and of one more: sums of the first dimension wait there."""
    return (world + 1) * count


def formula(cost: Cost) -> float | str:
    """Return the time of the slower part, in ns."""
    return _grid.gather_time(cost, ways=WAYS, wraps=True)
