"""Benches of a file whose results have something that others have not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import kernbench_core as kb
from kernbench_core.errors import KernbenchWarning


def racing(rt: kb.Runtime, n: int = 8) -> None:
    """Have two PEs write one place, and report rows."""
    y = rt.empty((n,), "f32", name="y")

    def write(y: Any, tl: Any) -> None:
        tl.store(y + tl.arange(0, n), tl.full((n,), 1.0, "f32") + tl.program_id(0))

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


def reaching(rt: kb.Runtime) -> None:
    """Reach outside of a tensor."""
    x = rt.tensor(np.arange(4, dtype=np.float32), name="x")

    def kernel(x: Any, tl: Any) -> None:
        tl.store(x + tl.arange(0, 8), tl.load(x + tl.arange(0, 8)))

    rt.launch(kernel, x, grid=(1,))


def wrong(rt: kb.Runtime) -> None:
    """Expect something else of two tensors than what kernels write there."""

    def kernel(x: Any, value: float, tl: Any) -> None:
        tl.store(x + tl.arange(0, 8), tl.full((8,), value, "f32"))

    for name in "xy":
        x = rt.empty((8,), "f32", name=name)
        rt.launch(kernel, x, 1.5, grid=(1,))
        rt.check(x, np.full(8, 2.0, np.float32))


def noisy(rt: kb.Runtime) -> None:
    """Print, and warn."""
    print("hello", end="")
    print(" there")
    warnings.warn("mind the gap.", KernbenchWarning, stacklevel=1)
    rt.tensor(np.zeros(4, np.float32))
