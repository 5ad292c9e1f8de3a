"""What each math op costs: cycles that a lane takes for one element. The defaults of pe_math's table.

The record of an op says of what it is composed [A]: simple steps and look-ups. A step takes one cycle. A look-up, by
which a unit for special functions computes, takes four: the throughput tables of the CUDA C programming guide give
compute capability 5.x 128 adds and 32 reciprocals, roots, exponentials, logarithms, sines or cosines per cycle. Table
look-ups and argument reductions inside a special function are not counted [unverified].
"""

from __future__ import annotations

from typing import Final

from kernbench_core.compute.ops import OPS, LaneCost

_LOOKUP: Final = 4.0


def cycles_of(cost: LaneCost) -> float:
    """Return the cycles that a lane takes for one element of what is composed so."""
    return cost.steps + _LOOKUP * cost.lookups


COSTS: Final[dict[str, float]] = {
    **{op.name: cycles_of(op.cost) for op in OPS.values()},
    **dict.fromkeys(("bias", "scale", "dequant"), 1.0),  # steps of epilogues: add, mul
    "other": 1.0,  # ops of plug-ins that say nothing
}
