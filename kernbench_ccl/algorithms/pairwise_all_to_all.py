"""All-to-all in N - 1 rounds: in round i every rank sends its block to the rank i after it.

At any time every rank sends to one other and is sent to by one, so that one pair's message has the link for itself.

Closed form: N - 1 rounds one after the other: (N - 1)(a + S/(N b)). Pipelined no round waits for the one before, and
there is one latency: a + (N - 1)/N S/b; that much at most where each round has links of its own.
"""

from typing import Any

from kernbench_ccl.algorithms import _direct, _forms
from kernbench_ccl.algorithms._direct import peers as peers
from kernbench_ccl.algorithms._tiles import meet
from kernbench_ccl.contract import Cost

COLLECTIVE = "all_to_all"


def pairwise_all_to_all(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Send block j of every rank to rank j; blocks have `count` elements, or what `tl.collective.counts` says."""
    counts = tl.collective.counts
    leaving, coming, longest = _direct.blocks_of(counts, count, rank, world, pe, n_pe)

    def end_round() -> None:
        meet(tl, rank, pe, n_pe)

    _direct.all_to_all(tl, in_ptr, out_ptr, rank, world, leaving, coming, longest, end_round)


kernel = pairwise_all_to_all


def formula(cost: Cost) -> float | str:
    """Return a + (N - 1) S/(N b) in ns, step by step (N - 1)(a + S/(N b)); S is what a rank sends in all."""
    if _forms.links_of_a_rank(cost) is None:
        return _forms.SHARED
    latencies = 1 if cost.pipeline else cost.world - 1
    return latencies * cost.hop_of(cost.part) + (cost.world - 1) * cost.nbytes / (cost.world * cost.bandwidth)
