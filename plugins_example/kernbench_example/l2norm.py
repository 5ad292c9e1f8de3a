"""A call of the kernel language, made of the language's own: kernels say `tl.l2norm(x)`."""

from __future__ import annotations

from typing import Any


def l2norm(tl: Any, x: Any) -> Any:
    """Return the square root of the sum of the squares of a tile's elements, a tile of one element."""
    return tl.sqrt(tl.sum(x * x))
