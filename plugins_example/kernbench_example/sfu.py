"""A unit that kernbench does not have, and an op for it: silu, x / (1 + exp(-x)), in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from kernbench_core.component import ComponentBase
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.params import Param
from kernbench_core.reporting import Stat


class Sfu(ComponentBase):
    """Compute special functions from a table, some elements per cycle.

    Models: a table look-up of fixed rate.
    Ignores: Reading operands from the scratchpad takes no time of its own.
    Timing: ceil(elements / lanes) / clock.
    Source: sizes are this example's own.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("lanes", "int", 16, "Elements per cycle.", minimum=1),
        Param("clock", "frequency", "1 GHz", "Clock of the unit.", positive=True),
    )

    STATS: ClassVar[tuple[Stat, ...]] = (Stat("elements", "", "sum", "Elements looked up."),)

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self.elements = 0

    def run(self, env: Environment, msg: Any) -> ProcessGenerator:
        """Be busy for as long as the elements take."""
        self.elements += msg.elements
        yield env.timeout(-(-msg.elements // self.params["lanes"]) / self.params["clock"])


def silu(params: Mapping[str, Any], inputs: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Compute x / (1 + exp(-scale * x)) in f32 and round once; `scale` is what the kernel gave."""
    x = inputs[0].astype(np.float32)
    return (x / (1.0 + np.exp(-float(params.get("scale", 1.0)) * x))).astype(inputs[0].dtype)


def silu_kernel(x_ptr, y_ptr, BLOCK, tl):  # type: ignore[no-untyped-def]
    """Apply silu to one PE's block, on the unit that the configuration adds."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.unit_op("pe_sfu", "example_silu", tl.load(x_ptr + offsets), scale=1.0)
    tl.store(y_ptr + offsets, y)


def bench(rt: Any, block: int = 1024) -> None:
    """Apply silu to one block per PE, on a special-function unit; needs --components sfu.yaml."""
    n = block * rt.n_pes
    x = rt.tensor((n,), "f32", name="x")
    y = rt.empty((n,), "f32", name="y")
    rt.launch(silu_kernel, x, y, block)
    rt.copy_to_host(y)
    rt.check(y, lambda: x.numpy() / (1.0 + np.exp(-x.numpy())))
