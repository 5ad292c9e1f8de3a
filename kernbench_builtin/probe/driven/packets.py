"""The packets of synthetic traffic, and what is measured of those that arrive."""

from __future__ import annotations

from array import array

from kernbench_core.messages import Emitter, MsgBase


class Packet(MsgBase):
    """Carry `nbytes` from one interface to another, and be measured at the end of its path."""

    __slots__ = ("meter", "tight")

    def __init__(self, nbytes: int, path: tuple[str, ...], meter: Meter, tight: int = 0) -> None:
        super().__init__(nbytes, path)
        self.meter = meter
        #: How many of the wires that set the ceiling are on its path.
        self.tight = tight

    def at_end(self, component: Emitter, head: float, tail: float) -> None:
        """Be measured; no answer goes back."""
        self.meter.note(self)


class Meter:
    """Collect what arrives: of packets born from `begin` to `end` (ns) everything, of others only when."""

    def __init__(self, begin: float, end: float) -> None:
        self.begin = begin
        self.end = end
        self.arrived_before = self.arrived_in_window = 0
        #: Of the packets that arrived in the window, how many of the wires that set the ceiling they crossed.
        self.tight_crossed = 0
        self.latencies = array("d")
        self.queueing = 0.0
        self.hops = 0

    def note(self, packet: Packet) -> None:
        """Take note of a packet whose head is at its destination, and whose tail will be at a known time."""
        if self.begin <= packet.tail < self.end:
            self.arrived_in_window += packet.nbytes
            self.tight_crossed += packet.tight
        elif packet.tail < self.begin:
            self.arrived_before += packet.nbytes
        if self.begin <= packet.born < self.end:
            self.latencies.append(packet.tail - packet.born)
            self.queueing += packet.queueing
            self.hops += len(packet.path) - 3
