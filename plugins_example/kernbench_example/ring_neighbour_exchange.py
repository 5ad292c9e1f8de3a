"""Neighbour exchange: each tile goes one way around the ring, then the other way."""

from __future__ import annotations

from typing import Any

from kernbench_ccl.contract import share

COLLECTIVE = "neighbour_exchange"

# The networks that it runs on; the kernel is given the integer of the one that it finds itself on as topo_kind.
TOPO_NAME_TO_KIND = {"ring": 0, "torus_2d": 1, "fully_connected": 2, "switch": 3}


def ring_neighbour_exchange(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int,
    pe: int, n_pe: int, topo_kind: int, tl: Any,
) -> None:  # fmt: skip
    """Give both neighbours the `count` elements of this rank; each PE does its share, tile by tile."""
    call = tl.collective
    before, after = (rank - 1) % world, (rank + 1) % world
    start, end = share(count, n_pe, pe)
    for first in range(start, end, call.tile):
        n = min(call.tile, end - first)
        x = tl.load(in_ptr + first, shape=(n,))
        # To send one tile and then receive one keeps queues short, also where both neighbours are one rank.
        tl.send(x, after)
        tl.store(out_ptr + first, tl.recv((n,), call.dtype, before))
        tl.send(x, before)
        tl.store(out_ptr + count + first, tl.recv((n,), call.dtype, after))


kernel = ring_neighbour_exchange
