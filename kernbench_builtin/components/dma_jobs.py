"""What a DMA keeps of its work: the chunks that wait for a direction, and what is the same for all of a descriptor."""

from __future__ import annotations

from collections import deque
from typing import Any

from kernbench_core.messages import MsgBase


class DmaChannel:
    """Keep the chunks that wait for one direction, and when (ns) each free place of it is, or will be, free."""

    __slots__ = ("free", "queue")

    def __init__(self, places: int) -> None:
        self.free = [0.0] * places
        self.queue: deque[Any] = deque()


class Trips:
    """Add up what a DMA's transfers of memory took, in ns: explanations ask what the PE's loads and stores waited for.

    Of each chunk, from when it got its place: `set_up`, `translation` of its addresses, the `scratchpad`'s end of it
    with the waits there, and its round trip over the fabric in the parts that `MsgBase` has. All commands together took
    `served` ns here, and `way` ns to come.
    """

    __slots__ = (
        "number", "overhead", "propagation", "queueing", "scratchpad", "serialisation", "served", "service",
        "set_up", "translation", "way",
    )  # fmt: skip

    def __init__(self) -> None:
        self.number = 0
        self.set_up = self.translation = self.scratchpad = self.served = self.way = 0.0
        self.propagation = self.serialisation = self.overhead = self.queueing = self.service = 0.0

    def add(self, trip: MsgBase) -> None:
        """Add a round trip that is over."""
        self.number += 1
        self.propagation += trip.propagation
        self.serialisation += trip.serialisation
        self.overhead += trip.overhead
        self.queueing += trip.queueing
        self.service += trip.service


class Job:
    """Keep what is the same for all chunks of a descriptor, how many are still to end, and its times in ns.

    A chunk `pushes` to another PE, `fetches` from the scratchpad before it leaves, `translates` addresses. Service of
    the first chunk `began`, the descriptor was `ready`, and the chunks so far had ended at `ends`.
    """

    __slots__ = (
        "began", "ends", "fetches", "msg", "op", "pushes", "ready", "started", "translates", "waiting",
    )  # fmt: skip

    def __init__(self, msg: Any, op: str, waiting: int) -> None:
        self.msg = msg
        self.op = op
        self.waiting = waiting
        self.pushes = self.fetches = self.translates = self.started = False
        self.began = self.ready = self.ends = 0.0
