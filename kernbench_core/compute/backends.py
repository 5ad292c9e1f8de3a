"""What computes floats in phase 2: numpy, or what a plug-in registers. All else is numpy's.

In and out: arrays. Runs look one up by its name, and hand it to the executor.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from attrs import frozen

from kernbench_core.compute.ops import MathOp
from kernbench_core.compute.ops.record import MathFunction
from kernbench_core.values.arrays import Array


@frozen
class ComputedBy:
    """What computed the data: the backend, the library with its version, the device in words, and how many ops.

    `ops` are all that were computed, `by_numpy` those of them that numpy computed, as other backends do not have all.
    """

    backend: str
    library: str
    device: str
    ops: int
    by_numpy: int

    @property
    def words(self) -> str:
        """Say which backend it was, and on what."""
        shared = f", {self.by_numpy:,} of {self.ops:,} ops by numpy" if self.by_numpy else ""
        return f"{self.backend} ({self.library}, {self.device}{shared})"


class Backend:
    """Compute families of core's functions, on arrays of one float dtype, f32 or f64; every answer is a new array.

    This is numpy; others override what they have. All must give what numpy gives within the tolerance of the dtype.
    """

    name = "numpy"
    #: From how many elements of all operands on it is asked for a math op, and from how many multiplications on for a
    #: product: of less, numpy has computed all before it is where the backend wants it.
    worth_elements = 0
    worth_multiplications = 0

    @classmethod
    def on(cls, device: str) -> Self:
        """Return one for a device, "" where none is named; UsageError where that cannot be had on this machine."""
        return cls()

    @property
    def library(self) -> str:
        """The library that computes, with its version."""
        return f"numpy {np.__version__}"

    @property
    def device(self) -> str:
        """What it computes on, in words."""
        return "CPU"

    def product(self, a: Array, b: Array) -> Array:
        """Multiply two matrices, or stacks of them."""
        found: Array = np.matmul(a, b)
        return found

    def function(self, op: MathOp) -> MathFunction | None:
        """Return what computes a math op on floats; None where numpy does."""
        return None

    def computed_by(self, ops: int, own: int) -> ComputedBy:
        """Say what computed so many ops, of which so many are its `own`."""
        return ComputedBy(self.name, self.library, self.device, ops, ops - own if self.name != "numpy" else ops)

    def __repr__(self) -> str:
        return f"<backend {self.name}: {self.library}, {self.device}>"
