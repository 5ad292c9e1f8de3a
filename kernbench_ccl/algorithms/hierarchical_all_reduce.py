"""All-reduce of a vector of every PE: over the PEs of a cube, the cubes of a SIP, then the SIPs, and back.

A reduce-scatter over the PEs of each cube leaves each PE a part of the cube's sum; over the columns, then the rows, of
cubes a part of the SIP's; an all-reduce between the PEs of the same place of all SIPs, all of them at the same time,
makes it everyone's; all-gathers over the same rings, in the opposite order, give every PE all of it.

Closed form: only the step between SIPs crosses scale-up links, where the PEs of a SIP together move one vector:
2(N - 1)(a + S/(N b)); the rest is on-die.
"""

from typing import Any

from kernbench_ccl.algorithms import _forms, _grid, _ring
from kernbench_ccl.algorithms._tiles import run
from kernbench_ccl.contract import Collective, Cost

COLLECTIVE = "all_reduce"
CONTRIBUTORS = ("pe",)


def hierarchical_all_reduce(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Reduce `count` elements of every PE, which lie at row `pe` of the rank's, and give every PE the result."""
    levels = rings_of(tl.collective, rank, pe, n_pe)
    own = pe * count
    run(tl, rank, pe, n_pe, [_grid.all_reduce(_ring.RingWork(tl), levels, in_ptr + own, out_ptr + own, 0, count)])


kernel = hierarchical_all_reduce


def rings_of(call: Collective, rank: int, pe: int, n_pe: int) -> list[_ring.Ring]:
    """Return the rings of a PE, from the innermost: its cube, its row and column of cubes, the SIPs.

    Where the PEs that take part are not the same number in every cube, all of them make one ring.
    """
    columns, rows = call.cubes
    if n_pe % (columns * rows):
        columns = rows = 1
    each = n_pe // (columns * rows)
    cube, place = divmod(pe, each)
    row, column = divmod(cube, columns)
    return [
        _ring.ring_of([(rank, cube * each + other) for other in range(each)], place),
        _ring.ring_of([(rank, (row * columns + other) * each + place) for other in range(columns)], column),
        _ring.ring_of([(rank, (other * columns + column) * each + place) for other in range(rows)], row),
        _ring.ring_of_ranks(call, rank),
    ]


def formula(cost: Cost) -> float | str:
    """Return 2(N - 1)(a + S/(N b)) in ns; S is one vector."""
    return _forms.ring_time(cost, passes=2)
