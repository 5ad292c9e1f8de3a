"""Casts between f16 and f32 as numpy does them, bit for bit, in a third of its time and less.

numpy takes the numbers one by one, and those below 2**-14 in loops of bits. Here integers of many at a time do it.
halves.pyx beside it is the same in C.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np

_Array = np.ndarray[Any, Any]
_F16, _F32 = np.dtype(np.float16), np.dtype(np.float32)
#: So many elements are worth the dozen calls that it takes.
_LEAST: Final = 2048
_SIGN, _EXPONENT = np.uint16(0x8000), np.uint32(0x7F800000)
#: 65536 and 2**-14 as f32's bits: from the first on f16 has infinity and NaN, below the second its numbers have fewer
#: digits.
_TOO_LARGE, _FIRST = np.uint32(0x47800000), np.uint32(0x38800000)
#: To a power of two, so many times that is added to have the 13 digits rounded off that f16 lacks.
_COARSE: Final = np.float32(1 << 13)
_GONE, _TO_SIGN = np.uint32(13), np.uint32(16)
#: Takes the exponent from f32's to f16's.
_REBASED: Final = np.uint16(0x1C400 & 0xFFFF)


def as_f16(array: _Array) -> _Array:
    """Return an array cast to f16, rounded to the nearest, of two to the even one."""
    if array.dtype != _F32 or array.size < _LEAST:
        return array.astype(_F16)
    bits: _Array = array.view(np.uint32)
    signed = bool(bits.max() >= _TOO_LARGE)  # numbers that have a sign are the largest of integers
    sizes: _Array = np.abs(array) if signed else array
    if signed and sizes.view(np.uint32).max() >= _TOO_LARGE:
        return array.astype(_F16)
    exponent = bits & _EXPONENT
    np.maximum(exponent, _FIRST, out=exponent)
    coarse = exponent.view(_F32) * _COARSE
    coarse += sizes  # which rounds to f16's last digit, and leaves it where the last one of f32 is
    exponent >>= _GONE
    exponent += coarse.view(np.uint32)
    found: _Array = exponent.astype(np.uint16)
    found -= _REBASED
    if signed:
        sign = (bits >> _TO_SIGN).astype(np.uint16)
        sign &= _SIGN
        found |= sign
    return found.view(_F16)


def as_f32(array: _Array) -> _Array:
    """Return an array as f32: itself if it is that."""
    if array.dtype == _F32:
        return array
    if array.dtype != _F16 or array.size < _LEAST or not array.flags.c_contiguous:
        return array.astype(_F32)
    return np.take(_widened(), array.view(np.uint16), mode="clip")  # none is beyond; that it need not look


@cache
def _widened() -> _Array:
    """Return all numbers of f16 as f32."""
    return np.arange(1 << 16, dtype=np.uint16).view(_F16).astype(_F32)
