"""The vector unit of a PE."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from kernbench_builtin.components.compute_unit import OPERAND_BANDWIDTH, OVERHEAD, SERVERS, ComputeUnit, streamed_bytes
from kernbench_builtin.components.math_costs import COSTS, cycles_of
from kernbench_core.compute.ops import ALIASES, OPS, Form, MathOp
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.oplog import OpPattern
from kernbench_core.params import Param
from kernbench_core.units import grid_ceil
from kernbench_core.values.dtypes import itemsize

_MOST_KNOWN: Final = 4096


class PeMath(ComputeUnit):
    """Compute element-wise ops and reductions: for a math command, or for the MATH stage of a tile.

    Models: lanes that take an element each, in memory order, for as many cycles as the op costs; an element wider \
than a lane takes several, and with packed: true narrow ones share a lane. A reduction adds up in the lanes first and \
then, where w lanes hold parts of one result, in a tree of ceil(log2(w)) steps, once, as results follow each other \
through it; a scan goes through the tree with every pass. w is 1 where at least `lanes` elements lie side by side \
behind the axis. Operands and result of a command stream from and to the scratchpad meanwhile, and what an epilogue \
step reads beside its tile.
    Ignores: An op costs the same for all values, and in all dtypes of one width. Operands of math commands do \
not queue for the scratchpad behind other traffic.
    Timing: overhead + max(cycles / clock, bytes / operand_bandwidth); passes = ceil(elements / lanes) * \
ceil(element width / lane_width); cycles = ceil(cost * passes), for a reduction ceil(cost * (passes + ceil(log2(w)))), \
for a scan ceil(cost * passes * (1 + ceil(log2(w)))); w = min(extent of the axis, ceil(lanes / elements behind the \
axis)); bytes are the larger of operands and result.
    Source: NKI guides, Trainium2 vector engine: 128 lanes at 0.96 GHz; costs of special functions: CUDA C programming \
guide, throughput of arithmetic instructions, compute capability 5.x: a quarter of the rate of adds; composed ones are \
counted in steps, by the records of the ops; the overhead and the lane width are assumptions.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("clock", "frequency", "0.96 GHz", "Clock of the lanes.", positive=True),
        Param("lanes", "int", 128, "Elements per cycle.", minimum=1),
        Param("lane_width", "size", "4 B", "Width of a lane.", positive=True),
        Param("packed", "bool", False, "Whether narrow elements share a lane."),
        Param("costs", "table", COSTS, "Cycles of a lane for one element, by op.", positive=True),
        OVERHEAD,
        OPERAND_BANDWIDTH,
        SERVERS,
    )

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self._lanes: int = self.params["lanes"]
        self._lane_width: int = self.params["lane_width"]
        self._packed: bool = self.params["packed"]
        self._costs: dict[str, float] = self.params["costs"]
        #: The peak on elements of a width, in operations per ns, by that width in bytes.
        self._peaks: dict[int, float] = {}
        #: How long commands take that are alike, in ns, and the peak on their elements.
        self._known: dict[OpPattern, tuple[float, float]] = {}

    def cycles(self, msg: Any) -> int:
        """Return the cycles of an op; `msg` has op, elements and dtype, and a command also reads, reduce and extra.

        They must be the same for commands that are `alike`: one of them is asked about.
        """
        op = ALIASES.get(msg.op, msg.op)
        cost = self._costs.get(op) or self._cost_of_plugin(msg)
        width = _width(msg)
        lanes = self._lanes * max(1, self._lane_width // width) if self._packed else self._lanes
        elements: int = msg.elements
        passes = -(-elements // lanes) * -(-width // self._lane_width)
        if getattr(msg, "reduce", False):
            tree = _tree_steps(msg.reads[0].value.shape, msg.extra.get("axis"), lanes)
            passes = passes * (1 + tree) if _scans(op, msg) else passes + tree
        return math.ceil(cost * passes)

    def _cost_of_plugin(self, msg: Any) -> float:
        """Return what the record of a plug-in's math op says, if it has one."""
        record: MathOp | None = getattr(msg, "math_op", None)
        return self._costs["other"] if record is None else cycles_of(record.cost)

    def min_service_ns(self, msg: Any) -> float:
        """Return how long an op takes, in ns; it never takes less, nor more."""
        return self._figures(msg)[0]

    def _figures(self, msg: Any) -> tuple[float, float]:
        """Return how long an op takes and the peak on its elements, worked out once for all commands that are alike."""
        alike: OpPattern | None = getattr(msg, "alike", None)
        found = None if alike is None else self._known.get(alike)
        if found is None:
            took = max(self.cycles(msg) / self._clock, streamed_bytes(msg) / self._port)
            found = grid_ceil(self._overhead + took), self._peak(_width(msg))
            if alike is not None:
                if len(self._known) >= _MOST_KNOWN:
                    self._known.clear()
                self._known[alike] = found
        return found

    def run(self, env: Environment, msg: Any) -> ProcessGenerator:
        """Keep the lanes busy for as long as the op takes."""
        yield env.timeout(self.min_service_ns(msg))

    def flops(self, msg: Any) -> float:
        """Return one for each element, whatever the op; a mask leaves none out."""
        return float(msg.elements)

    def peak_flops(self, msg: Any) -> float:
        """Return what full lanes do with the cheapest op, in operations per ns."""
        return self._figures(msg)[1]

    def _peak(self, width: int) -> float:
        """Return the peak on elements of so many bytes."""
        peak = self._peaks.get(width)
        if peak is None:
            packed = max(1, self._lane_width // width) if self._packed else 1
            per_cycle = self._lanes * packed / -(-width // self._lane_width) / min(self._costs.values())
            peak = self._peaks[width] = per_cycle * self._clock * self.servers
        return peak


def _scans(op: str, msg: Any) -> bool:
    """Tell whether an op, built in or of a plug-in's record, keeps every partial result."""
    record: MathOp | None = OPS.get(op) or getattr(msg, "math_op", None)
    return record is not None and record.form is Form.SCAN


def _width(msg: Any) -> int:
    """Return the bytes of the widest element that an op takes or gives; immediate operands take the op's dtype."""
    widest = max(itemsize(msg.dtype), 1)
    for read in getattr(msg, "reads", ()):
        if read.region is not None:
            width = itemsize(read.value.dtype)
            if width > widest:
                widest = width
    return widest


def _tree_steps(shape: Sequence[int], axis: int | None, lanes: int) -> int:
    """Return the steps that combine the lanes which hold parts of one result; `axis` None means all of `shape`."""
    extent = math.prod(shape) if axis is None else shape[axis]
    behind = 1 if axis is None else math.prod(shape[axis + 1 :])
    together = min(extent, -(-lanes // max(1, behind)))
    return max(0, together - 1).bit_length()
