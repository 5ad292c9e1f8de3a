"""Barrier: no rank ends before every other has begun; it has no data."""

from __future__ import annotations

from kernbench_ccl.collectives.record import CallShape, CollectiveKind
from kernbench_ccl.collectives.traffic import Traffic, at, every_pair


def _nothing(call: CallShape, rank: int) -> None:
    return None


def _traffic(call: CallShape, size: float) -> Traffic:
    return Traffic(every_pair(call.world), at(0.0), at(0.0), lambda inside: 0.0)


BARRIER = CollectiveKind(
    "barrier",
    _nothing,
    _nothing,
    traffic=_traffic,
    barrier=True,
    template="kernbench_ccl.templates:barrier.py",
)
