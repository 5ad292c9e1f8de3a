"""A collective of one's own: every rank gets the vectors of both its neighbours, as a stencil's halo exchange does."""

from __future__ import annotations

from kernbench_ccl.collectives import CallShape, CollectiveKind, Piece, moved


def brings(call: CallShape, rank: int) -> int:
    """Return the elements of a rank's input."""
    return call.count


def ends(call: CallShape, rank: int) -> list[Piece]:
    """Return what a rank's output must hold: what the rank before it brings, then what the rank after it brings."""
    return [moved((rank - 1) % call.world, 0, call.count), moved((rank + 1) % call.world, 0, call.count)]


# The size is the larger of input and output, that of two vectors: a rank sends and receives as much, so that the bus
# bandwidth is the algorithm's, which is the default. Bounds follow from `ends`.
NEIGHBOUR_EXCHANGE = CollectiveKind("neighbour_exchange", brings, ends)
