"""The matrix unit of a PE."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from kernbench_builtin.components.compute_unit import OPERAND_BANDWIDTH, OVERHEAD, SERVERS, ComputeUnit
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.params import Param
from kernbench_core.values.dtypes import NAMES, is_float, itemsize

_RATES_BY_SIZE = {1: 2, 2: 1, 4: 0.25, 8: 0.0625}
RATES = {name: _RATES_BY_SIZE[itemsize(name)] for name in sorted(NAMES, key=is_float, reverse=True)}
"""Multiply-accumulates per cell and cycle, by the dtype of the operands: those of one size go at one rate."""


class PeGemm(ComputeUnit):
    """Multiply (m, k) by (k, n): for a GEMM command, or for the GEMM stage of a tile.

    Models: an array of rows x columns cells that holds a block of the output, one element in each cell, while k \
streams through; a block that does not fill the array takes as long as one that does. Each product fills the array \
once, rows + columns - 2 cycles until the last cell has its first operands, and drains it once, rows cycles to shift \
out the last block; with pipelined: false every block does. Narrow dtypes go faster, wide ones slower. The operands \
and the result of a GEMM command stream from and to the scratchpad meanwhile.
    Ignores: Back-to-back products do not overlap in the array: each fills and drains it. Operands of GEMM commands do \
not queue for the scratchpad behind other traffic.
    Timing: overhead + max(cycles / clock, bytes / operand_bandwidth); blocks = ceil(m / rows) * ceil(n / columns); \
cycles = blocks * ceil(k / rate) + rows + columns - 2 + rows, or blocks * (ceil(k / rate) + rows + columns - 2 + rows) \
when not pipelined; bytes are the larger of operands and result of a command, 0 for a tile.
    Source: tt-isa-documentation, Wormhole tile: 4.1 TFLOP/s at 1 GHz = 2048 MACs per cycle; AWS Neuron docs, \
Trainium: 47.5 TFLOP/s f32, 190 bf16 and f16, 380 int8, hence the rates 1/4, 1, 2; 8-bit floats as fast as int8: \
NVIDIA H100 white paper, 989 TFLOP/s f16, 1979 f8; int16, int32, int64 and the overhead are unverified.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("clock", "frequency", "1 GHz", "Clock of the array.", positive=True),
        Param("rows", "int", 32, "Rows of cells, along m.", minimum=1),
        Param("columns", "int", 64, "Columns of cells, along n.", minimum=1),
        Param("rates", "table", RATES, "Multiply-accumulates per cell and cycle, by dtype.", positive=True),
        Param("pipelined", "bool", True, "Whether a block enters while the one before it drains."),
        OVERHEAD,
        OPERAND_BANDWIDTH,
        SERVERS,
    )

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self._rows: int = self.params["rows"]
        self._columns: int = self.params["columns"]
        self._rates: dict[str, float] = self.params["rates"]
        self._pipelined: bool = self.params["pipelined"]

    def cycles(self, msg: Any) -> int:
        """Return the cycles of a product; `msg` has m, k, n and dtype_in."""
        m, n = msg.m, msg.n
        blocks: int = -(-m // self._rows) * -(-n // self._columns)
        stream: int = math.ceil(msg.k / self._rates[msg.dtype_in])
        around = 2 * self._rows + self._columns - 2
        return blocks * stream + around if self._pipelined else blocks * (stream + around)

    def flops(self, msg: Any) -> float:
        """Return two for each multiply-accumulate."""
        return float(2 * msg.m * msg.k * msg.n)

    def peak_flops(self, msg: Any) -> float:
        """Return what full arrays do with operands of this dtype, in operations per ns."""
        return 2.0 * self._rows * self._columns * self._rates[msg.dtype_in] * self._clock * self.servers
