"""Operands of every pair of dtypes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from kernbench_core.values.dtypes import NAMES, numpy_dtype

PAIRS = list(itertools.product(NAMES, NAMES))


def sample(name: str) -> np.ndarray[Any, Any]:
    """Give numbers of a dtype: its ends, ones that no narrow float holds, both signs, zero."""
    dtype = numpy_dtype(name)
    if dtype.kind == "b":
        return np.array([0, 1, 1, 0, 1, 0, 0, 1], bool)
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        return np.array([ends.min, ends.max, 0, 1, ends.max // 3, 7, ends.min // 5, 2049 & ends.max], dtype)
    return np.array([0.1, -1.5, 0.0, 3.0, 448.0, -7.0, 0.3125, -0.0], np.float32).astype(dtype)


def wide(values: Any) -> np.ndarray[Any, Any]:
    """Give floats in f32 at least."""
    return np.asarray(values) if values.dtype == np.float64 else single(values)


def single(values: Any) -> np.ndarray[Any, Any]:
    """Give numbers in f32."""
    return np.asarray(values).astype(np.float32)
