"""What computes floats: products in twice the digits, for `kernbench run … --backend example.wide`."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernbench_core.compute import Backend


class WideProducts(Backend):
    """Multiply in f64 and round once; all else is numpy's."""

    name = "example.wide"

    def product(self, a: Any, b: Any) -> Any:
        """Multiply two matrices, or stacks of them, of f32 or f64."""
        return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)
