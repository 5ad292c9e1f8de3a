"""What the matrix and the vector unit of a PE have in common: cycles of a clock, and operands that stream along."""

from __future__ import annotations

import math
from typing import Any

from kernbench_core.component import ComponentBase
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.params import Param

OVERHEAD = Param("overhead", "time", "10 ns", "Start-up time of a product or op.", minimum=0)
SERVERS = Param("servers", "int", 1, "Units that share the queue.", minimum=1, maximum=1024)
OPERAND_BANDWIDTH = Param(
    "operand_bandwidth",
    "bandwidth",
    "512 GB/s",
    "Rate of each of the two ports to the scratchpad: operands come by one, results go by the other.",
    positive=True,
)


class ComputeUnit(ComponentBase):
    """Work in cycles of a clock, on operands that stream along.

    What a piece of work takes by itself is overhead + max(cycles / clock, bytes / operand_bandwidth), where the bytes
    are those that pass the busier one of the two ports to the scratchpad. A subclass declares `clock` and `overhead`,
    and counts the cycles; one without `operand_bandwidth` has its operands for free.
    """

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self._overhead: float = self.params["overhead"]
        self._clock: float = self.params["clock"]
        streams = "operand_bandwidth" in self.params
        self._port: float = self.params["operand_bandwidth"] if streams else math.inf

    def cycles(self, msg: Any) -> int:
        """Return the cycles that the work of a command or tile takes by itself; it must depend on `msg` only."""
        raise NotImplementedError


def streamed_bytes(msg: Any, operands: int | None = None) -> int:
    """Return the bytes on the busier port: what a command reads from, or writes to, the scratchpad.

    A tile's operands and results are in registers; only what an epilogue step reads beside them (`beside_bytes`)
    comes from the scratchpad. Immediate operands come with the command. Of a command only the first `operands` count,
    all by default.
    """
    reads = getattr(msg, "reads", None)
    if reads is None:
        return int(getattr(msg, "beside_bytes", 0))
    read = 0
    for operand in reads if operands is None else reads[:operands]:
        if operand.region is not None:
            read += operand.value.nbytes
    written = int(msg.value.nbytes)
    return read if read > written else written
