"""Send and receive: every rank sends its vector to the next rank, as nccl-tests' sendrecv does.

Rank r sends to r + 1 and receives from r - 1.

Closed form: on a ring every link carries one vector: a + S/b.
"""

from typing import Any

from kernbench_ccl.algorithms import _direct, _forms
from kernbench_ccl.algorithms._tiles import Segment, copy, exchange, tiles
from kernbench_ccl.contract import Cost, share

COLLECTIVE = "send_recv"


def direct_send_recv(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int, pe: int, n_pe: int, topo_kind: int,
    tl: Any,
) -> None:  # fmt: skip
    """Give every rank the `count` elements of the rank before it."""
    start, end = share(count, n_pe, pe)
    block = Segment(start, start, end - start)
    if world == 1:
        copy(tl, in_ptr, out_ptr, block)
        return
    order = [(1, tile) for tile in tiles([block], tl.collective.tile)]
    leaving = [_direct.message((rank + i) % world, block, tile, True) for i, tile in order]
    coming = [_direct.message((rank - i) % world, block, tile, False) for i, tile in order]
    for arrived, x in exchange(tl, in_ptr, leaving, coming, _direct.due(tl, order)):
        tl.store(out_ptr + arrived.place, x)


kernel = direct_send_recv


def formula(cost: Cost) -> float | str:
    """Return a + S/b in ns."""
    if not _forms.around(cost):
        return _forms.SHARED
    return cost.hop_of(cost.nbytes) + cost.nbytes / cost.bandwidth
