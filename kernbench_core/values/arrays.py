"""What data is made of before it is a value: arrays of any dtype, and shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
"""Elements along each dimension, the outermost first."""

_FEW, _AT_ENDS, _DIGITS, _WIDTH = 16, 3, 5, 100


def in_words(array: Array, before: str = "") -> str:
    """Return the elements as text, the first and last of each dimension where they are more than 16.

    `before` is what stands before it in its line.
    """
    digits = _DIGITS if array.size > 1 else None
    return np.array2string(array, _WIDTH, digits, separator=", ", prefix=before, threshold=_FEW, edgeitems=_AT_ENDS)
