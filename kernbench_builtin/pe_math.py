"""The vector unit of a PE."""

from __future__ import annotations

from typing import Any, ClassVar

from kernbench_core.component import ComponentBase
from kernbench_core.context import RunContext
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.graph import Node
from kernbench_core.params import Param
from kernbench_core.units import grid_ceil


class PeMath(ComponentBase):
    """Compute element-wise ops and reductions: for a math command, or for the MATH stage of a tile.

    Models: `lanes` elements per cycle, busy with one op at a time.
    Ignores: Every math op costs one cycle per `lanes` elements: an exp as much as an add, a reduction as much as its \
input, and dtypes do not matter. The operands of a math command, and those of an \
epilogue step beside the tile, come from the scratchpad for free.
    Timing: overhead + ceil(elements / lanes) / clock.
    Source: NKI guides, Trainium2 vector engine: 128 lanes at 0.96 GHz; the overhead is an assumption.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("clock", "frequency", "0.96 GHz", "Clock of the lanes.", positive=True),
        Param("lanes", "int", 128, "Elements per cycle.", minimum=1),
        Param("overhead", "time", "10 ns", "Start-up time of an op.", minimum=0),
        Param("servers", "int", 1, "Vector units that share the queue.", minimum=1),
    )

    def __init__(self, node: Node, ctx: RunContext) -> None:
        super().__init__(node, ctx)
        self._overhead: float = self.params["overhead"]
        self._clock: float = self.params["clock"]
        self._lanes: int = self.params["lanes"]

    def min_service_ns(self, msg: Any) -> float:
        """Return how long the op takes, in ns; it never takes less, nor more."""
        return grid_ceil(self._overhead + -(-msg.elements // self._lanes) / self._clock)

    def run(self, env: Environment, msg: Any) -> ProcessGenerator:
        """Keep the lanes busy for as long as the op takes."""
        yield env.timeout(self.min_service_ns(msg))
