"""The matrix unit of a PE."""

from __future__ import annotations

from typing import Any, ClassVar

from kernbench_core.component import ComponentBase
from kernbench_core.context import RunContext
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.graph import Node
from kernbench_core.params import Param
from kernbench_core.units import grid_ceil


class PeGemm(ComponentBase):
    """Multiply (m, k) by (k, n): for a GEMM command, or for the GEMM stage of a tile.

    Models: a multiply-accumulate array with a peak rate, busy with one product at a time.
    Ignores: The array's shape is not modelled: every m, k and n keeps it full, and it has no fill and drain. \
All dtypes run at one rate. A GEMM command's operands come from the scratchpad for free (a tile's take a FETCH).
    Timing: overhead + ceil(m * k * n / macs_per_cycle) / clock.
    Source: tt-isa-documentation, Wormhole tile: 4.1 TFLOP/s at 1 GHz = 2048 MACs per cycle; the overhead is an \
assumption.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("clock", "frequency", "1 GHz", "Clock of the array.", positive=True),
        Param("macs_per_cycle", "int", 2048, "Multiply-accumulates per cycle.", minimum=1),
        Param("overhead", "time", "10 ns", "Start-up time of a product.", minimum=0),
        Param("servers", "int", 1, "Arrays that share the queue.", minimum=1),
    )

    def __init__(self, node: Node, ctx: RunContext) -> None:
        super().__init__(node, ctx)
        self._overhead: float = self.params["overhead"]
        self._clock: float = self.params["clock"]
        self._macs: int = self.params["macs_per_cycle"]

    def min_service_ns(self, msg: Any) -> float:
        """Return how long the product takes, in ns; it never takes less, nor more."""
        return grid_ceil(self._overhead + -(-msg.m * msg.k * msg.n // self._macs) / self._clock)

    def run(self, env: Environment, msg: Any) -> ProcessGenerator:
        """Keep the array busy for as long as the product takes."""
        yield env.timeout(self.min_service_ns(msg))
