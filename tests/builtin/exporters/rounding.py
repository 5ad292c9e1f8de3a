"""Times in whole ns as traces have them, for tests of each format."""

from __future__ import annotations

import math


def near(ns: float) -> int:
    """Round as the manual says, by another way than numpy's: the nearest, halves up."""
    down = math.floor(ns)
    return down + (ns - down >= 0.5)
