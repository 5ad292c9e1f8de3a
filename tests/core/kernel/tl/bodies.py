"""Bodies of kernels that run over tiles or pointers, and tiles for them, for tests of the language against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernbench_core.kernel.pointers import Pointer
from kernbench_core.kernel.tl.tensor import Tensor
from tests.core.kernel_rig import Rig

RNG = np.random.default_rng(11)
F = RNG.uniform(0.25, 2, (5, 7)).astype(np.float32)
G = RNG.uniform(-3, 3, (5, 7)).astype(np.float32)
N = np.where(RNG.uniform(size=(5, 7)) < 0.3, np.nan, G).astype(np.float32)
I = RNG.integers(-9, 9, (5, 7)).astype(np.int32)  # noqa: E741
U = RNG.integers(0, 200, (5, 7)).astype(np.uint8)
P = RNG.uniform(-1, 1, (3, 5, 2)).astype(np.float32)


def run(body: Callable[..., Any], *arrays: Any) -> list[Any]:
    """Run an expression over loaded tiles; give what phase 2 finds in each of its results."""
    boxes: list[Any] = []

    def kernel(pointers: Any, tl: Any) -> None:
        made = body(tl, *[tl.load(Pointer(p, 0, p.dtype), shape=p.shape) for p in pointers])
        for each in made if isinstance(made, tuple) else (made,):
            shape = each.shape if isinstance(each, Tensor) else np.shape(each)
            dtype = each.dtype if isinstance(each, Tensor) else "f32" if isinstance(each, float) else "int64"
            boxes.append(rig.empty(shape, dtype))
            tl.store(Pointer(boxes[-1], 0, dtype), each)

    rig = Rig()
    rig.run(kernel, [rig.tensor(array) for array in arrays])
    return [rig.numpy(box) for box in boxes]


def collect(body: Callable[..., Any], *arrays: Any) -> tuple[Any, Rig]:
    """Run `body(*pointers, tl)` in a kernel and give what it returns."""
    found: list[Any] = []

    def kernel(pointers: Any, tl: Any) -> None:
        found.append(body(*[point(tl, p) for p in pointers], tl))

    def point(tl: Any, allocation: Any) -> Any:
        return Pointer(allocation, 0, allocation.dtype)

    rig = Rig()
    rig.run(kernel, [rig.tensor(array, f"t{i}") for i, array in enumerate(arrays)])
    return found[0], rig
