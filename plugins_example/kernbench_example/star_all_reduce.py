"""All-reduce over a star: rank 0 adds what everyone sends, and sends everyone the result."""

from __future__ import annotations

from typing import Any

from kernbench_ccl.contract import share

COLLECTIVE = "all_reduce"

# The networks that it runs on; the kernel is given the integer of the one that it finds itself on as topo_kind.
TOPO_NAME_TO_KIND = {"fully_connected": 0, "switch": 1}


def star_all_reduce(
    in_ptr: Any, out_ptr: Any, scratch_ptr: Any, count: int, rank: int, world: int,
    pe: int, n_pe: int, topo_kind: int, tl: Any,
) -> None:  # fmt: skip
    """Reduce `count` elements of every rank; each PE does its share, tile by tile."""
    call = tl.collective
    start, end = share(count, n_pe, pe)
    for first in range(start, end, call.tile):
        n = min(call.tile, end - first)
        x = tl.load(in_ptr + first, shape=(n,))
        if rank == 0:
            for other in range(1, world):
                x = call.combine(tl, x, tl.recv((n,), call.dtype, other))
            x = call.finish(tl, x)  # divides, if the reduction is avg
            for other in range(1, world):
                tl.send(x, other)
        else:
            tl.send(x, 0)
            x = tl.recv((n,), call.dtype, 0)
        tl.store(out_ptr + first, x)


kernel = star_all_reduce


def refuses(world: int, network: Any) -> str | None:
    """Say why it does not do so many ranks: rank 0 keeps a queue for each other one in its scratchpad."""
    if world <= 17:
        return None
    return f"star_all_reduce must have at most 17 ranks, not {world}; choose direct, which shares the work."
