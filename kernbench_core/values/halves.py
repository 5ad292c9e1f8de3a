"""Casts between f16 and f32 as numpy does them, bit for bit; compiled, halves.pyx beside it is faster."""

from __future__ import annotations

from typing import Any

import numpy as np

_Array = np.ndarray[Any, Any]
_F16, _F32 = np.dtype(np.float16), np.dtype(np.float32)


def as_f16(array: _Array) -> _Array:
    """Return an array cast to f16, rounded to the nearest, of two to the even one."""
    return array.astype(_F16)


def as_f32(array: _Array) -> _Array:
    """Return an array as f32: itself if it is that."""
    return array.astype(_F32, copy=False)
