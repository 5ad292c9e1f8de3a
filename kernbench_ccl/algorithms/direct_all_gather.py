"""All-gather straight between all ranks: one step, on networks where all pairs can talk at once.

Every rank sends its part to every other.

Every rank keeps a queue from every other, which takes scratchpad space: many ranks get fewer and smaller slots.

Closed form: fully connected, each pair has a link of its own: a + S/(N b). On a switch the N - 1 messages share a
rank's link: a + (N - 1)/N S/b.
"""

from typing import Any

from kernbench_ccl.algorithms import _direct, _forms
from kernbench_ccl.algorithms._direct import peers as peers
from kernbench_ccl.algorithms._tiles import Segment, copy
from kernbench_ccl.contract import Cost, share

COLLECTIVE = "all_gather"


def direct_all_gather(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Give every rank the `count` elements of each, in rank order."""
    start, end = share(count, n_pe, pe)
    segments = [Segment(start, other * count + start, end - start) for other in range(world)]
    copy(tl, in_ptr, out_ptr, segments[rank])
    _direct.all_gather(tl, in_ptr, out_ptr, rank, world, segments)


kernel = direct_all_gather


def formula(cost: Cost) -> float | str:
    """Return a + (N - 1) S/(N l b), l = N - 1 links of a rank or one, in ns."""
    return _forms.exchange_time(cost)
