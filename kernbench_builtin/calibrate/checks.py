"""Rows that a fit is checked by: they are kept out of it, and simulated in full on the machine that it ends with."""

from __future__ import annotations

import numpy as np

from kernbench_builtin.calibrate.identification import Matrix, loose_unknowns

SPARE = 6
"""More different rows than parameters there must be for two of them to be kept out."""
_LONG = 16.0
"""So many times the shortest time takes, at most, what is kept out: in full, even of what was continued."""
_NEEDED = 0.5
"""A leverage of more than this has a row that others hardly stand in for."""


def kept_out(elasticities: Matrix, ns: Matrix) -> list[int]:
    """Return two rows that a fit can do without, one in the middle and a long one; none where they are needed.

    `elasticities` are those of closed forms, as for `require_identified`; `ns` are measured times.
    """
    count, unknowns = elasticities.shape
    if count < unknowns + SPARE:
        return []
    leverage = np.einsum("ij,ji->i", elasticities, np.linalg.pinv(elasticities))
    can = [int(at) for at in np.argsort(ns, kind="stable") if leverage[at] <= _NEEDED and ns[at] <= _LONG * ns.min()]
    found = [can[len(can) // 2], can[-1]] if len(can) > 2 else []
    return [] if loose_unknowns(np.delete(elasticities, found, axis=0)) else found
