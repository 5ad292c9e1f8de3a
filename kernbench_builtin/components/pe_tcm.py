"""The scratchpad of a PE, and the request that the PE's units send to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from kernbench_builtin.components.channelled_memory import ChannelledMemory, Shares
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.messages import Transaction
from kernbench_core.params import Param
from kernbench_core.units import grid_ceil

_READ, _WRITE = 0, 1


class TcmRequest(Transaction):
    """Move `total` bytes between a unit and the scratchpad of its PE, there and back; timing only.

    `op` is "read" or "write". `on_done(request)` is called inside the delivery of the answer, at the unit.
    """

    __slots__ = ()

    def __init__(
        self, op: str, total: int, unit: str, tcm: str, on_done: Callable[[Transaction], None]
    ) -> None:
        super().__init__(op, (), total, (unit, tcm), on_done)


class PeTcm(ChannelledMemory):
    """Serve the scratchpad accesses of a PE's units and of its DMA.

    Models: an access latency; one read and one write channel, each of which serialises by bandwidth, first come \
first served; reads and writes do not disturb each other.
    Ignores: Scratchpad banks and their conflicts are not modelled.
    Timing: out = arrival + overhead; start = max(out, channel free), free = start + bytes / bandwidth of the channel, \
then latency. A read's data leaves as it comes, a write is acknowledged when its last byte is in.
    Source: tt-isa-documentation, Tensix L1: 16 banks x 16 B/cycle = 256 GB/s at 1 GHz; Graphcore GC2, 6 cycles \
per access (6 ns at 1 GHz).
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("overhead", "time", "0 ns", "Time to accept a request, before its access.", minimum=0),
        Param("read_bandwidth", "bandwidth", "512 GB/s", "Rate of the read channel.", positive=True),
        Param("write_bandwidth", "bandwidth", "512 GB/s", "Rate of the write channel.", positive=True),
        Param("latency", "time", "3 ns", "Access time of the array.", positive=True),
    )

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self._overhead = grid_ceil(self.params["overhead"])
        self._read = self.internal_wire("read", self.params["read_bandwidth"], self.params["latency"])
        self._write = self.internal_wire("write", self.params["write_bandwidth"], self.params["latency"])
        self.channel_wires = [self._read, self._write]

    def book_access(self, op: str, nbytes: int, head: float, tail: float) -> tuple[float, float]:
        """Occupy the channel of `op` ("read" or "write") and return (head, tail) of the access; nothing is delivered.

        The request, or the data of a write, reaches the scratchpad at (`head`, `tail`) ns. Called by pe_dma, which
        knows on its own when to go on, so that the scratchpad's end of a chunk takes no events.
        """
        self.served += 1
        wire = self._write if op == "write" else self._read
        return wire.book(nbytes, head + self._overhead, tail + self._overhead)

    def shares(self, msg: Any) -> Shares:
        """Return all bytes on the channel of the request's direction."""
        return ((_WRITE if msg.op == "write" else _READ, msg.total),) if msg.total else ()
