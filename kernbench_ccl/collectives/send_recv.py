"""Send-receive: every rank sends to the next one and receives from the one before; `count` are a message's elements."""

from __future__ import annotations

from collections.abc import Sequence

from kernbench_ccl.collectives.record import CallShape, CollectiveKind, Piece, moved, own
from kernbench_ccl.collectives.traffic import Traffic, messages


def _ends(call: CallShape, rank: int) -> Sequence[Piece]:
    return [moved((rank - 1) % call.world, 0, call.count)]


def _traffic(call: CallShape, size: float) -> Traffic:
    return messages(tuple((rank, (rank + 1) % call.world) for rank in range(call.world)), size)


SEND_RECV = CollectiveKind(
    "send_recv",
    own,
    _ends,
    traffic=_traffic,
    spelling="sendrecv",
    template="kernbench_ccl.templates:send_recv.py",
)
