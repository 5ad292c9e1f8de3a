"""What data is made of before it is a value: arrays of any dtype, and shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
"""Elements along each dimension, the outermost first."""
