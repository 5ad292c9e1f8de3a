"""Benches of a file whose results have something that others have not."""

from __future__ import annotations

from typing import Any

import numpy as np

import kernbench_core as kb


def racing(rt: kb.Runtime, n: int = 8, reach: int = 8) -> None:
    """Have two PEs write one place, as far as `reach`, and report rows."""
    y = rt.zeros((n,), "f32", name="y")

    def write(y: Any, tl: Any) -> None:
        tl.store(y + tl.arange(0, reach), tl.load(y + tl.arange(0, reach)) + tl.program_id(0))

    rt.launch(write, y)
    rt.report(size=n, time_ns=1.5, name="first", right=None)
    rt.report(size=np.float32(2), name="second", right=True)


def branching(rt: kb.Runtime, n: int = 8) -> None:
    """Branch on what a kernel computed, and read it on the host."""
    x = rt.tensor(np.arange(n, dtype=np.float32), name="x")

    def kernel(x: Any, tl: Any) -> None:
        if float(tl.sum(tl.load(x + tl.arange(0, n)) * 2.0, axis=0)) > 3:
            tl.store(x + tl.arange(0, n), tl.zeros((n,), "f32"))

    rt.launch(kernel, x, grid=(1,))
    rt.check(x, np.zeros(n, np.float32))
    x.numpy()


def wrong(rt: kb.Runtime) -> None:
    """Expect something else of two tensors than what kernels write there."""
    for name in "xy":
        x = rt.empty((8,), "f32", name=name)
        rt.launch(lambda x, tl: tl.store(x + tl.arange(0, 8), tl.full((8,), 1.5, "f32")), x, grid=(1,))
        rt.check(x, np.full(8, 2.0, np.float32))
