"""A matrix unit that charges what the built-in one leaves out: filling and draining a systolic array."""

from __future__ import annotations

from typing import Any, ClassVar

from kernbench_core import ComponentBase, Fabric, Node, Param
from kernbench_core.environment import Environment, ProcessGenerator


class SlowGemm(ComponentBase):
    """Multiply (m, k) by (k, n) on an output-stationary array of rows x cols cells, one block after another.

    Models: one multiply-accumulate per cell and cycle; each block of the result waits for the array to fill and drain.
    Ignores: Operands are always there: the array never stalls for the scratchpad.
    Timing: ceil(m / rows) * ceil(n / cols) * (k + rows + cols - 2) / clock.
    Source: the textbook schedule of an output-stationary systolic array; sizes are this example's own.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("rows", "int", 16, "Rows of cells.", minimum=1),
        Param("cols", "int", 16, "Columns of cells.", minimum=1),
        Param("clock", "frequency", "500 MHz", "Clock of the array.", positive=True),
    )

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self._rows: int = self.params["rows"]
        self._cols: int = self.params["cols"]
        self._clock: float = self.params["clock"]

    def run(self, env: Environment, msg: Any) -> ProcessGenerator:
        """Keep the array busy for as long as the product takes; `msg` has m, k and n."""
        blocks = -(-msg.m // self._rows) * -(-msg.n // self._cols)
        yield env.timeout(blocks * (msg.k + self._rows + self._cols - 2) / self._clock)
