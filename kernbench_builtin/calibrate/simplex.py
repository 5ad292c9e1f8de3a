"""Search without slopes: for functions with kinks, at which slopes on one side point across to where it is steep."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kernbench_builtin.calibrate.identification import Matrix

Vertex = tuple[float, Matrix]
"""The value of a function, and where it has it."""


def nelder_mead(value: Callable[[Matrix], float], corners: Sequence[Matrix], most: int, smallest: float) -> Vertex:
    """Return the least value found from a simplex of n + 1 corners, and where it is (Nelder and Mead, 1965).

    A simplex no wider than `smallest` ends the search, and so do `most` steps of at most two values and n more.
    """
    points = [(value(corner), corner) for corner in corners]
    for _ in range(most):
        points.sort(key=lambda point: point[0])
        if max(float(np.max(np.abs(at - points[0][1]))) for _, at in points) <= smallest:
            break
        better = _better(value, points)
        if better is not None:
            points[-1] = better
        else:
            near = points[0][1]
            points[1:] = [(value(middle), middle) for middle in ((at + near) / 2 for _, at in points[1:])]
    return min(points, key=lambda point: point[0])


def _better(value: Callable[[Matrix], float], points: Sequence[Vertex]) -> Vertex | None:
    """Return what takes the place of the last, the worst of the points: beyond the others, or nearer to them."""
    middle = np.mean([at for _, at in points[:-1]], axis=0)

    def at(part: float) -> Vertex:
        where = middle + part * (points[-1][1] - middle)
        return value(where), where

    worst, across = points[-1][0], at(-1.0)
    if across[0] < points[0][0]:
        return min(at(-2.0), across, key=lambda point: point[0])
    if across[0] < points[-2][0]:
        return across
    nearer = at(-0.5 if across[0] < worst else 0.5)
    return nearer if nearer[0] < min(across[0], worst) else None
