"""Arrays of numpy.ma, which are no values: no tensor keeps a mask."""

from __future__ import annotations

import sys

NO_MASK = "an array without a mask, not one of numpy.ma; give its .filled(value), and the mask as an array of its own"
"""What an array must be, for sentences."""


def has_mask(value: object) -> bool:
    """Return whether a value is an array of numpy.ma, or a list, tuple or dict with one in it."""
    masked = sys.modules.get("numpy.ma")
    if masked is None:  # nobody has one
        return False
    if isinstance(value, list | tuple | dict):
        return any(map(has_mask, value.values() if isinstance(value, dict) else value))
    return isinstance(value, masked.MaskedArray)
