"""The scratchpad of a cube."""

from __future__ import annotations

from typing import Any, ClassVar

from kernbench_builtin.channelled_memory import ChannelledMemory, Shares
from kernbench_core.context import RunContext
from kernbench_core.graph import Node
from kernbench_core.messages import MsgBase
from kernbench_core.params import Param


class Sram(ChannelledMemory):
    """Serve reads and writes of a cube's SRAM; a terminal node that answers on the reverse path.

    Models: an access latency and one port that serialises reads and writes by bandwidth.
    Ignores: Bank conflicts are not modelled.
    Timing: out = arrival + overhead; start = max(out, free), free = start + bytes / bandwidth, then latency.
    Source: tt-isa-documentation, Tensix L1 (16 banks x 16 B/cycle = 256 GB/s at 1 GHz).
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("overhead", "time", "2 ns", "Controller latency, per request."),
        Param("bandwidth", "bandwidth", "128 GB/s", "Rate of the port, reads and writes together.", positive=True),
        Param("latency", "time", "5 ns", "Access time of the array.", positive=True),
    )

    def __init__(self, node: Node, ctx: RunContext) -> None:
        super().__init__(node, ctx)
        self._overhead: float = self.params["overhead"]
        self.channel_wires = [self.internal_wire("port", self.params["bandwidth"], self.params["latency"])]

    def overhead(self, msg: MsgBase) -> float:
        """Return the controller latency in ns."""
        return self._overhead

    def shares(self, msg: Any) -> Shares:
        """Return all bytes on the one port."""
        return ((0, msg.total),) if msg.total else ()
