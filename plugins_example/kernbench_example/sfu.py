"""A unit that kernbench does not have, and an op for it: silu, x / (1 + exp(-x)), in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from kernbench_core import ComponentBase, Fabric, Node, Param, Stat, UsageError
from kernbench_core.environment import Environment, ProcessGenerator


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


def silu(params: Mapping[str, Any], inputs: Sequence[npt.NDArray[Any]], *, scale: float = 1.0) -> npt.NDArray[Any]:
    """Compute x / (1 + exp(-scale * x)) in f32 and round once; `scale` is what the kernel gave."""
    x = inputs[0].astype(np.float32)
    result: npt.NDArray[Any] = x / (1.0 + np.exp(-scale * x))
    return result.astype(inputs[0].dtype)


def silu_kernel(x_ptr, y_ptr, BLOCK, PARTS, tl):  # type: ignore[no-untyped-def]
    """Apply silu to one PE's block, on the unit that the configuration adds: a command for each part, sent at once."""
    n = BLOCK // PARTS
    parts = [tl.program_id(0) * BLOCK + part * n + tl.arange(0, n) for part in range(PARTS)]
    tiles = [tl.load(x_ptr + offsets) for offsets in parts]
    results = [tl.unit_op("pe_sfu", "example_silu", x, scale=1.0, wait=False) for x in tiles]
    for offsets, y in zip(parts, results, strict=True):
        tl.store(y_ptr + offsets, y)


def bench(rt: Any, block: int = 1024, parts: int = 1) -> None:
    """Apply silu to one block per PE, in equal parts, on a special-function unit; needs --components sfu.yaml."""
    if parts < 1 or block % parts:
        raise UsageError(f"parameter 'parts' must divide 'block', which is {block}, not {parts!r}; give a divisor.")
    n = block * rt.n_pes
    x = rt.tensor((n,), "f32", name="x")
    y = rt.empty((n,), "f32", name="y")
    rt.launch(silu_kernel, x, y, block, parts)
    rt.copy_to_host(y)
    rt.check(y, lambda: x.numpy() / (1.0 + np.exp(-x.numpy())))
