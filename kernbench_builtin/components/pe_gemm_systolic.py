"""A matrix unit that is a systolic array, cycle for cycle as simulators of such arrays count it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar

from kernbench_builtin.components.compute_unit import SERVERS
from kernbench_builtin.components.matrix_unit import MatrixUnit, Passage
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.params import Param

OUTPUT, WEIGHT, INPUT = "output_stationary", "weight_stationary", "input_stationary"


class PeGemmSystolic(MatrixUnit):
    """Multiply A (m, k) by B (k, n) on a systolic array of R rows and C columns, one fold after another.

    A fold is what the array holds at once: a block of the output (output stationary), of the weights B (weight
    stationary) or of the inputs A (input stationary). Operands enter skewed, one row or column a cycle later than the
    one before, and move one cell a cycle. A fold at an edge takes as long as a full one.

    Models: fill, skew and drain of each fold; weight and input stationary load the R rows of a fold first. With \
overlap, the next fold is loaded behind the present one and enters right after it, in a product and from one product \
to the next that is there in time; one fold that finds its weights or inputs in the cells is not loaded.
    Ignores: Operands are always there: the array never stalls for the scratchpad. All dtypes run at one rate.
    Timing: alone overhead + cycles / clock, where cycles is the number of the last cycle, the first one being 0; \
output_stationary: ceil(m/R) * ceil(n/C) * (k + R + C - 2) - 1; weight_stationary: ceil(k/R) * ceil(n/C) * \
(m + 2R + C - 2) - 1; input_stationary: ceil(k/R) * ceil(m/C) * (n + 2R + C - 2) - 1. With overlap each fold but the \
last takes k, max(m, R), max(n, R) cycles instead. In a row of products with overlap: each enters at \
max(when the operands before it are in, load), load = max(when the last fold before it began to enter, arrival + \
overhead) + R cycles (output_stationary: no R), is in folds * k, (folds - 1) * max(m, R) + m, (folds - 1) * \
max(n, R) + n cycles later, and out R + C - 3 cycles after that. Without overlap it begins when the array is empty.
    Source: the analytical model of scale-out systolic arrays (SCALE-Sim), which counts compute cycles in this way; \
rows, columns and clock are chosen as those of pe_gemm.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("clock", "frequency", "1 GHz", "Clock of the array.", positive=True),
        Param("rows", "int", 32, "Rows of cells.", minimum=1),
        Param("columns", "int", 64, "Columns of cells.", minimum=1),
        Param("dataflow", "str", OUTPUT, "What stays in the cells.", choices=(OUTPUT, WEIGHT, INPUT)),
        Param("overlap", "bool", False, "Whether a fold enters right behind the one before it."),
        Param("overhead", "time", "0 ns", "Start-up time of a product.", minimum=0),
        SERVERS,
    )

    FIRST_CYCLE: ClassVar[int] = 1

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self._rows: int = self.params["rows"]
        self._columns: int = self.params["columns"]
        self._dataflow: str = self.params["dataflow"]
        self._overlap: bool = self.params["overlap"]

    @property
    def overlaps(self) -> bool:
        """Whether a fold enters right behind the one before it."""
        return self._overlap

    def passage(self, msg: Any) -> Passage:
        """Return how a product passes, fold by fold; `msg` has m, k and n."""
        rows, columns = self._rows, self._columns
        # what lies along the rows, along the columns, and what streams through; cycles to load a fold
        down, across, stream, load = {
            OUTPUT: (msg.m, msg.n, msg.k, 0),
            WEIGHT: (msg.k, msg.n, msg.m, rows),
            INPUT: (msg.k, msg.m, msg.n, rows),
        }[self._dataflow]
        folds = -(-down // rows) * -(-across // columns)
        around = rows + columns - 2
        filled = down * across / (folds * rows * columns)
        period = max(stream, load) if self._overlap else load + stream + around
        return Passage(folds, load, stream, period, around, filled)

    def stationary(self, msg: Any) -> Hashable:
        """Return which weights or inputs a product keeps in the cells, where the message tells."""
        operand = {WEIGHT: "b", INPUT: "a"}.get(self._dataflow)
        tells = getattr(msg, "operand_key", None)
        return None if operand is None or tells is None else tells(operand)

    def peak_flops(self, msg: Any) -> float:
        """Return what full arrays do, in operations per ns; a single cell counts twice, as its first cycle is 0."""
        return 2.0 * max(2, self._rows * self._columns) * self._clock * self.servers
