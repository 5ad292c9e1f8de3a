"""Kernels that run on a rig which notes what their scratchpads hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernbench_builtin.explain.scratchpad_map import TcmMap, TcmRecorder
from tests.core.kernel_rig import Rig

X = np.arange(1024, dtype=np.float32).reshape(32, 32)


def recorded(kernel: Any, pes: int = 1) -> tuple[TcmMap, Rig]:
    """Run a kernel with a recorder."""
    rig = Rig(pes, scratchpads=TcmRecorder)
    rig.run(kernel, rig.tensor(X))
    return rig.recorder.result(rig.env.now), rig
