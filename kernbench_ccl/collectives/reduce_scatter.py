"""Reduce-scatter: every rank gets its part of the reduction of all ranks' vectors; `count` are a part's elements."""

from __future__ import annotations

from collections.abc import Sequence

from kernbench_ccl.collectives.record import CallShape, CollectiveKind, Piece, combined, once
from kernbench_ccl.collectives.traffic import Traffic, at, every_pair


def _brings(call: CallShape, rank: int) -> int:
    return call.count * call.world


def _ends(call: CallShape, rank: int) -> Sequence[Piece]:
    return [combined(range(call.world), rank * call.count, call.count)]


def _traffic(call: CallShape, size: float) -> Traffic:
    world = call.world
    part, rest = size / world, (world - 1) * (size / world)
    return Traffic(
        every_pair(world), at(rest), at(part), lambda inside: (world - len(inside)) * part,
        everywhere=(world - 1) * size,
    )  # fmt: skip


REDUCE_SCATTER = CollectiveKind(
    "reduce_scatter",
    _brings,
    _ends,
    once,
    _traffic,
    reduces=True,
    in_place=True,
    template="kernbench_ccl.templates:reduce_scatter.py",
)
