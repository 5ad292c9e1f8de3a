"""All-to-all straight between all ranks: tiles for all peers at the same time.

Every rank sends a tile of its block for each other rank in turn, then the next tile of each.

Every rank keeps a queue from every other, which takes scratchpad space: many ranks get fewer and smaller slots.

Closed form: fully connected, each pair has a link of its own: a + S/(N b). On a switch the N - 1 messages share a
rank's link: a + (N - 1)/N S/b.
"""

from typing import Any

from kernbench_ccl.algorithms import _direct, _forms
from kernbench_ccl.algorithms._direct import peers as peers
from kernbench_ccl.contract import Cost

COLLECTIVE = "all_to_all"


def direct_all_to_all(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Send block j of every rank to rank j; blocks have `count` elements, or what `tl.collective.counts` says."""
    counts = tl.collective.counts
    leaving, coming, longest = _direct.blocks_of(counts, count, rank, world, pe, n_pe)
    _direct.all_to_all(tl, in_ptr, out_ptr, rank, world, leaving, coming, longest)


kernel = direct_all_to_all


def formula(cost: Cost) -> float | str:
    """Return a + (N - 1) S/(N l b), l = N - 1 links of a rank or one, in ns."""
    return _forms.exchange_time(cost)
