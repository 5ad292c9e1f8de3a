"""The operands of a composite and a run over them, for tests of what it computes and of what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.core.kernel_rig import Rig

A = (np.arange(48, dtype=np.float16).reshape(6, 8) - 20) / 8
B = (np.arange(40, dtype=np.float16).reshape(8, 5) - 15) / 8
BIAS = np.arange(5, dtype=np.float32)


def run(kernel: Any, rig: Rig | None = None, out: str = "f32") -> tuple[Rig, Any]:
    """Run a kernel over (a, b, bias, c) and give the rig and c."""
    rig = rig or Rig()
    c = rig.empty((6, 5), out, "c")
    rig.run(kernel, rig.tensor(A, "a"), rig.tensor(B, "b"), rig.tensor(BIAS, "bias"), c)
    return rig, c
