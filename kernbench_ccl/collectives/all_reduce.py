"""All-reduce: every rank gets the reduction of all ranks' vectors; `count` are the elements of a vector."""

from __future__ import annotations

from collections.abc import Sequence

from kernbench_ccl.collectives.record import CallShape, CollectiveKind, Piece, combined, own, twice
from kernbench_ccl.collectives.traffic import Traffic, at, every_pair


def _ends(call: CallShape, rank: int) -> Sequence[Piece]:
    return [combined(range(call.world), 0, call.count)]


def _traffic(call: CallShape, size: float) -> Traffic:
    """Every element needs 2(N - 1) transfers (gossip with one-way calls)."""
    world = call.world
    return Traffic(every_pair(world), at(size), at(size), lambda inside: size, everywhere=2 * (world - 1) * size)


ALL_REDUCE = CollectiveKind(
    "all_reduce",
    own,
    _ends,
    twice,
    _traffic,
    reduces=True,
    in_place=True,
    per_pe=True,
    template="kernbench_ccl.templates:all_reduce.py",
)
