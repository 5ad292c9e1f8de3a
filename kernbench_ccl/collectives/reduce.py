"""Reduce: the root gets the reduction of all ranks' vectors; `count` are the elements of one."""

from __future__ import annotations

from collections.abc import Sequence

from kernbench_ccl.collectives.record import CallShape, CollectiveKind, Piece, combined, own
from kernbench_ccl.collectives.traffic import Traffic, at, to_root


def _ends(call: CallShape, rank: int) -> Sequence[Piece] | None:
    return [combined(range(call.world), 0, call.count)] if rank == call.root else None


def _traffic(call: CallShape, size: float) -> Traffic:
    root, pairs = call.root, to_root(call.world, call.root)
    rest = at(size, *(a for a, _ in pairs))
    return Traffic(pairs, rest, at(size, root), lambda inside: 0.0 if root in inside else size)


REDUCE = CollectiveKind(
    "reduce",
    own,
    _ends,
    traffic=_traffic,
    reduces=True,
    rooted=True,
    in_place=True,
    template="kernbench_ccl.templates:reduce.py",
)
