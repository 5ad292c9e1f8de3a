"""All-reduce straight between all ranks: two steps, on networks where all pairs can talk at once.

Every rank sends segment j of its vector to rank j, which reduces the N segments and sends the sum to everyone.

Every rank keeps a queue from every other, which takes scratchpad space: many ranks get fewer and smaller slots.

Closed form: fully connected, each pair has a link of its own: 2(a + S/(N b)). On a switch the N - 1 messages share a
rank's link: 2(a + (N - 1)/N S/b).
"""

from typing import Any

from kernbench_ccl.algorithms import _direct, _forms
from kernbench_ccl.algorithms._direct import peers as peers
from kernbench_ccl.algorithms._tiles import cut, meet
from kernbench_ccl.contract import Cost, share

COLLECTIVE = "all_reduce"


def direct_all_reduce(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Reduce `count` elements of every rank and give every rank the result."""
    start, end = share(count, n_pe, pe)
    segments = cut(start, end, world)
    _direct.reduce_scatter(tl, in_ptr, out_ptr, rank, world, segments)
    if not tl.collective.pipeline:
        meet(tl, rank, pe, n_pe)
    _direct.all_gather(tl, out_ptr, out_ptr, rank, world, segments)


kernel = direct_all_reduce


def formula(cost: Cost) -> float | str:
    """Return 2(a + (N - 1) S/(N l b)), l = N - 1 links of a rank or one, in ns."""
    return _forms.exchange_time(cost, steps=2)
