"""`triton.cdiv`, `triton.next_power_of_2`, and `triton.testing`."""

from __future__ import annotations


def cdiv(x: int, y: int) -> int:
    """Divide, rounding up."""
    return -(-x // y)


def next_power_of_2(n: int) -> int:
    """Return the least power of two that is not below `n`; 0 for 0."""
    return 1 << (n - 1).bit_length() if n > 0 else 0
