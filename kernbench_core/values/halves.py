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
_SIGN: Final = np.uint32(0x80000000)
#: The bits of 65536 and 2**-14: from the first on f16 has infinity and NaN, below the other fewer digits.
_TOO_LARGE, _SMALL = 0x47800000, np.uint32(0x38800000)
_HALF: Final = np.uint32(0x3F000000)
#: Takes the exponent from f32's to f16's, and rounds: all of the 13 bits that go but half of the last.
_REBASED: Final = np.uint32(0xC8000FFF)
_GONE, _ONE, _TO_SIGN = np.uint32(13), np.uint32(1), np.uint32(16)


def as_f16(array: _Array) -> _Array:
    """Return an array cast to f16, rounded to the nearest, of two to the even one."""
    if array.dtype != _F32 or array.size < _LEAST:
        return array.astype(_F16)
    sign: _Array = array.view(np.uint32) & _SIGN
    size = array.view(np.uint32) ^ sign
    if size.max() >= _TOO_LARGE:
        return array.astype(_F16)
    small = (size.view(_F32) + np.float32(0.5)).view(np.uint32)  # at 0.5 the last digit of f32 is that of such f16
    small -= _HALF
    found = size >> _GONE
    found &= _ONE
    found += _REBASED
    found += size
    found >>= _GONE
    np.copyto(found, small, where=size < _SMALL)
    sign >>= _TO_SIGN
    found |= sign
    return found.astype(np.uint16).view(_F16)


def as_f32(array: _Array) -> _Array:
    """Return an array as f32: itself if it is that."""
    if array.dtype == _F32:
        return array
    if array.dtype != _F16 or array.size < _LEAST or not array.flags.c_contiguous:
        return array.astype(_F32)
    return np.take(_widened(), array.view(np.uint16))


@cache
def _widened() -> _Array:
    """Return all numbers of f16 as f32."""
    return np.arange(1 << 16, dtype=np.uint16).view(_F16).astype(_F32)
