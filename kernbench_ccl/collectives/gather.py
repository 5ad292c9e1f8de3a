"""Gather: the root gets the vectors of all ranks, one after the other; `count` are the elements of one."""

from __future__ import annotations

from collections.abc import Sequence

from kernbench_ccl.collectives.all_gather import every_vector
from kernbench_ccl.collectives.record import CallShape, CollectiveKind, Piece, once, own
from kernbench_ccl.collectives.traffic import Traffic, messages, to_root


def _ends(call: CallShape, rank: int) -> Sequence[Piece] | None:
    return every_vector(call, rank) if rank == call.root else None


def _traffic(call: CallShape, size: float) -> Traffic:
    return messages(to_root(call.world, call.root), size / call.world)


GATHER = CollectiveKind(
    "gather",
    own,
    _ends,
    once,
    _traffic,
    rooted=True,
    in_place=True,
    template="kernbench_ccl.templates:gather.py",
)
