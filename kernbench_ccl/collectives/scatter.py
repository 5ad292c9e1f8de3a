"""Scatter: every rank gets its part of the root's vector; `count` are the elements of a part."""

from __future__ import annotations

from collections.abc import Sequence

from kernbench_ccl.collectives.record import CallShape, CollectiveKind, Piece, moved, once
from kernbench_ccl.collectives.traffic import Traffic, from_root, messages


def _brings(call: CallShape, rank: int) -> int | None:
    return call.count * call.world if rank == call.root else None


def _ends(call: CallShape, rank: int) -> Sequence[Piece]:
    return [moved(call.root, rank * call.count, call.count)]


def _traffic(call: CallShape, size: float) -> Traffic:
    return messages(from_root(call.world, call.root), size / call.world)


SCATTER = CollectiveKind(
    "scatter",
    _brings,
    _ends,
    once,
    _traffic,
    rooted=True,
    in_place=True,
    template="kernbench_ccl.templates:scatter.py",
)
