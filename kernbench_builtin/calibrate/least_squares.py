"""Least squares of few unknowns, each within its limits."""

from __future__ import annotations

import itertools

import numpy as np

from kernbench_builtin.calibrate.identification import Matrix


def bounded_least_squares(matrix: Matrix, right: Matrix, low: Matrix, high: Matrix) -> Matrix:
    """Return the x from `low` to `high` with the least |matrix x - right|.

    Parameters are few: each may be free or on a limit, and all combinations are tried.
    """
    best: tuple[float, Matrix] | None = None
    for where in itertools.product((0, -1, 1), repeat=len(low)):
        x = np.where(np.array(where) < 0, low, high)
        free = np.flatnonzero(np.array(where) == 0)
        if free.size:
            held = np.setdiff1d(np.arange(len(low)), free)
            scale = np.abs(matrix[:, free]).max(axis=0)
            scale[scale == 0] = 1.0
            rest = right - matrix[:, held] @ x[held]
            x[free] = np.linalg.lstsq(matrix[:, free] / scale, rest, rcond=None)[0] / scale
            if np.any(x[free] < low[free]) or np.any(x[free] > high[free]):
                continue
        badness = float(np.sum((matrix @ x - right) ** 2))
        if best is None or badness < best[0]:
            best = (badness, x)
    assert best is not None, "all on their limits is always a candidate"
    return best[1]
