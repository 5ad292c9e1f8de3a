"""The matrix unit of a PE."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from kernbench_builtin.components.compute_unit import OPERAND_BANDWIDTH, OVERHEAD, SERVERS
from kernbench_builtin.components.matrix_unit import MatrixUnit, Passage
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.params import Param
from kernbench_core.values.dtypes import NAMES, is_float, itemsize

_RATES_BY_SIZE = {1: 2, 2: 1, 4: 0.25, 8: 0.0625}
_MULTIPLIED = sorted(set(NAMES) - {"f64"}, key=lambda name: (not is_float(name), NAMES.index(name)))
RATES = {name: _RATES_BY_SIZE[itemsize(name)] for name in _MULTIPLIED}
"""Multiply-accumulates per cell and cycle, by the dtype of the operands: those of one size go at one rate."""


class PeGemm(MatrixUnit):
    """Multiply (m, k) by (k, n): for a GEMM command, or for the GEMM stage of a tile.

    Models: an array of rows x columns cells that holds a block of the output, one element in each cell, while k \
streams through; a block that does not fill the array takes as long as one that does. Filling takes rows + columns - 2 \
cycles until the last cell has its first operands, draining rows cycles to shift out the last block; with pipelined: \
false every block does both. Products stream, too: the operands of one enter right behind those of the one before it, \
if it is there in time, so that a row of products fills and drains once; k tiles of one sum and products whose \
accumulator the one before makes drain once in any case. Narrow dtypes go faster, wide ones slower. The operands and \
the result of a GEMM command stream from and to the scratchpad meanwhile.
    Ignores: Blocks that stream faster than the ones before them are shifted out are not held up. Operands of GEMM \
commands do not queue for the scratchpad behind other traffic.
    Timing: alone overhead + max(cycles / clock, bytes / operand_bandwidth); blocks = ceil(m / rows) * \
ceil(n / columns); cycles = blocks * ceil(k / rate) + rows + columns - 2 + rows, or blocks * (ceil(k / rate) + \
rows + columns - 2 + rows) when not pipelined; bytes are the larger of operands and result of a command, 0 for a tile. \
In a row of products: each enters at max(when the operands before it are in, arrival + overhead), is in \
max(blocks * ceil(k / rate) / clock, bytes / operand_bandwidth) later, and out max((blocks * ceil(k / rate) + rows + \
columns - 2 + rows) / clock, bytes / operand_bandwidth) after it enters; when not pipelined it enters when the one \
before it is out.
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

    @property
    def overlaps(self) -> bool:
        """Whether a block enters while the one before it drains."""
        return self._pipelined

    def passage(self, msg: Any) -> Passage:
        """Return how a product passes, block by block; `msg` has m, k, n and dtype_in."""
        blocks: int = -(-msg.m // self._rows) * -(-msg.n // self._columns)
        stream: int = math.ceil(msg.k / self._rates[msg.dtype_in])
        around = 2 * self._rows + self._columns - 2
        filled = msg.m * msg.n / (blocks * self._rows * self._columns)
        return Passage(blocks, 0, stream, stream if self._pipelined else stream + around, around, filled)

    def peak_flops(self, msg: Any) -> float:
        """Return what full arrays do with operands of this dtype, in operations per ns."""
        return 2.0 * self._rows * self._columns * self._rates[msg.dtype_in] * self._clock * self.servers
