"""What the matrix and the vector unit of a PE have in common: cycles of a clock, and operands that stream along."""

from __future__ import annotations

import math
from typing import Any

from kernbench_core.component import ComponentBase
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.params import Param
from kernbench_core.units import grid_ceil

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
    """Be busy with one piece of work at a time, for a time that the work alone decides.

    overhead + max(cycles / clock, bytes / operand_bandwidth), where the bytes are those that pass the busier one of
    the two ports to the scratchpad. A subclass declares `clock` and `overhead`, and counts the cycles; one without
    `operand_bandwidth` has its operands for free.
    """

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self._overhead: float = self.params["overhead"]
        self._clock: float = self.params["clock"]
        self._port: float = self.params.get("operand_bandwidth", math.inf)

    def cycles(self, msg: Any) -> int:
        """Return the cycles that the work of a command or tile takes; it must depend on `msg` only."""
        raise NotImplementedError

    def min_service_ns(self, msg: Any) -> float:
        """Return how long the work takes, in ns; it never takes less, nor more."""
        return grid_ceil(self._overhead + max(self.cycles(msg) / self._clock, streamed_bytes(msg) / self._port))

    def run(self, env: Environment, msg: Any) -> ProcessGenerator:
        """Keep the unit busy for as long as the work takes."""
        yield env.timeout(self.min_service_ns(msg))


def streamed_bytes(msg: Any) -> int:
    """Return the bytes on the busier port: what a command reads from, or writes to, the scratchpad.

    A tile's operands and results are in registers; only what an epilogue step reads beside them (`beside_bytes`)
    comes from the scratchpad. Immediate operands come with the command.
    """
    reads = getattr(msg, "reads", None)
    if reads is None:
        return int(getattr(msg, "beside_bytes", 0))
    read: int = sum(operand.value.nbytes for operand in reads if operand.region is not None)
    return max(read, int(msg.value.nbytes))
