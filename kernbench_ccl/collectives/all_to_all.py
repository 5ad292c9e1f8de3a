"""All-to-all: every rank sends each rank a part of its vector; `count` are the elements of one pair of ranks.

Where pairs differ `counts` has the elements of each, and `count` those of the largest.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from kernbench_ccl.collectives.record import CallShape, CollectiveKind, Piece, moved, once
from kernbench_ccl.collectives.traffic import Traffic, every_pair, messages


def _brings(call: CallShape, rank: int) -> int:
    return call.count * call.world if call.counts is None else sum(call.counts[rank])


def _ends(call: CallShape, rank: int) -> Sequence[Piece]:
    counts = call.counts
    if counts is None:
        return [moved(sender, rank * call.count, call.count) for sender in range(call.world)]
    return [moved(sender, sum(row[:rank]), row[rank]) for sender, row in enumerate(counts)]


def _traffic(call: CallShape, size: float) -> Traffic:
    world, part = call.world, size / call.world
    found = messages(every_pair(world), part)
    return evolve(found, cross=lambda inside: len(inside) * (world - len(inside)) * part)


ALL_TO_ALL = CollectiveKind(
    "all_to_all",
    _brings,
    _ends,
    once,
    _traffic,
    takes_counts=True,
    template="kernbench_ccl.templates:all_to_all.py",
)
