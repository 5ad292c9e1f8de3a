"""Barrier by dissemination: nobody leaves before everyone has come.

The PEs of a rank meet; then its first PE, in rounds k = 0, 1, ..., sends a token to the rank 2^k after it and waits for
that of the rank 2^k before it; then the PEs meet again. After ceil(log2 N) rounds every rank has heard of every other.

Closed form: ceil(log2 N) a, and nothing for the bytes of a token.

Source: Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", 1988.
"""

import math
from typing import Any

from kernbench_ccl.algorithms import _forms
from kernbench_ccl.algorithms._tiles import meet
from kernbench_ccl.contract import Cost

COLLECTIVE = "barrier"


def dissemination_barrier(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Wait until every PE of every rank is here."""
    dtype = tl.collective.dtype
    meet(tl, rank, pe, n_pe)
    distance = 1
    while pe == 0 and distance < world:
        sent = tl.send(tl.zeros((1,), dtype), (rank + distance) % world, wait=False)
        tl.recv((1,), dtype, (rank - distance) % world)
        tl.wait(sent)
        distance *= 2
    meet(tl, rank, pe, n_pe)


kernel = dissemination_barrier


def formula(cost: Cost) -> float | str:
    """Return ceil(log2 N) a in ns."""
    rounds = math.ceil(math.log2(cost.world))
    if not _forms.linked(cost, ((a, (a + (1 << i)) % cost.world) for i in range(rounds) for a in range(cost.world))):
        return _forms.SHARED
    return rounds * cost.hop_of(0)
