"""All-gather: every rank gets the vectors of all ranks, one after the other; `count` are the elements of one."""

from __future__ import annotations

from collections.abc import Sequence

from kernbench_ccl.collectives.record import CallShape, CollectiveKind, Piece, moved, once, own
from kernbench_ccl.collectives.traffic import Traffic, at, every_pair


def every_vector(call: CallShape, rank: int) -> Sequence[Piece]:
    """Return what every rank brings, in rank order."""
    return [moved(other, 0, call.count) for other in range(call.world)]


def _traffic(call: CallShape, size: float) -> Traffic:
    world = call.world
    part, rest = size / world, (world - 1) * (size / world)
    return Traffic(
        every_pair(world), at(part), at(rest), lambda inside: len(inside) * part, everywhere=(world - 1) * size
    )


ALL_GATHER = CollectiveKind(
    "all_gather",
    own,
    every_vector,
    once,
    _traffic,
    in_place=True,
    template="kernbench_ccl.templates:all_gather.py",
)
