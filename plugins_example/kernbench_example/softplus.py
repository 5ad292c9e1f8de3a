"""A math op that kernbench does not have: softplus, log(1 + exp(beta x)) / beta, as `tl.softplus(x, beta=1.0)`.

The record says all that kernbench asks of an op. Nothing here knows the simulator: a saved op log is executed with this
module and numpy alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernbench_core.compute.ops import Again, LaneCost, MathOp
from kernbench_core.compute.ops.shape_rules import elementwise
from kernbench_core.compute.ops.type_rules import floats
from kernbench_core.values import Array


def softplus(params: Mapping[str, Any], x: Array) -> Array:
    """Compute log(1 + exp(beta x)) / beta in f32, which floats come in; kernbench rounds the result once."""
    beta = np.float32(params.get("beta", 1.0))
    result: Array = np.logaddexp(np.float32(0), beta * x) / beta
    return result


def second_way(params: Mapping[str, Any], x: Array) -> Array:
    """Compute it in f64, as --verify-ops compares with: without exponentials that leave the range."""
    beta = params.get("beta", 1.0)
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(beta * x))) / beta


SOFTPLUS = MathOp(
    "softplus",
    softplus,
    types=floats,  # of a float, which the result is too; integers are refused
    shapes=elementwise,
    keywords=("beta",),
    again=Again(second_way),
    cost=LaneCost(steps=5, lookups=2),  # exp and log are a look-up and a product each; scale, add one, scale back
)


def softplus_kernel(x_ptr, y_ptr, BLOCK, tl):  # type: ignore[no-untyped-def]
    """Apply softplus to one PE's block."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.softplus(tl.load(x_ptr + offsets), beta=2.0))


def bench(rt: Any, block: int = 1024) -> None:
    """Apply softplus, a math op of the plug-in, to one block per PE."""
    n = block * rt.n_pes
    x = rt.tensor((n,), "f16", name="x")
    y = rt.empty((n,), "f16", name="y")
    rt.launch(softplus_kernel, x, y, block)
    rt.copy_to_host(y)
    rt.check(y, lambda: np.log(1.0 + np.exp(2.0 * x.numpy().astype(np.float64))) / 2.0)
