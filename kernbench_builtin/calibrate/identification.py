"""Whether rows of measurements tell parameters apart, asked before anything is simulated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kernbench_core.calibration import Unknown
from kernbench_core.errors import UsageError

Matrix = NDArray[np.float64]

NOISE = 0.01
"""The error of a measurement that a fit must be able to bear, as a part of it: clocks and other load, 1 %."""
_LOOSE = 0.5
"""A parameter that such errors leave open by more than this part of it is not identified."""
_DEPENDENT = 1e-7
"""Directions in which rows change by less than this part of the largest are none."""


def require_identified(unknowns: Sequence[Unknown], elasticities: Matrix, cases: int) -> None:
    """Raise UsageError naming each parameter that rows do not identify, and which rows would.

    `elasticities[i, j]` is by which part time i changes when the term of parameter j does by a whole; `cases` is how
    many different things were measured.
    """
    if cases < len(unknowns):
        names = ", ".join(unknown.name for unknown in unknowns)
        raise UsageError(
            f"a fit of {len(unknowns)} parameters ({names}) must have at least as many different measurements, not "
            f"{cases}; {_needs(unknowns)}, or fit fewer with --fit."
        )
    loose = loose_unknowns(elasticities)
    if not loose:
        return
    bad = [unknown for unknown, one in zip(unknowns, loose, strict=True) if one]
    names = " and ".join(unknown.name for unknown in bad)
    verb = "is" if len(bad) == 1 else "are"
    raise UsageError(
        f"{names} {verb} not identified by these rows: values far apart would fit them as well; {_needs(bad)}, or "
        f"leave {'it' if len(bad) == 1 else 'one of them'} as the machine has it by naming the others with --fit."
    )


def require_simulated(unknowns: Sequence[Unknown], elasticities: Matrix, free: Sequence[bool]) -> None:
    """Raise UsageError for a parameter that is `free` of its limits and on which simulated rows hardly depend.

    `elasticities` are those of the simulation: another part of the machine may bind, whatever the closed forms say.
    """
    loose = loose_unknowns(elasticities[:, list(free)])
    among = [unknown for unknown, one in zip(unknowns, free, strict=True) if one]
    bad = [unknown for unknown, one in zip(among, loose, strict=False) if one]
    if bad:
        names = " and ".join(unknown.name for unknown in bad)
        raise UsageError(
            f"{names} cannot be fitted on this machine: simulated, these rows hardly depend on "
            f"{'it' if len(bad) == 1 else 'them'}, as something else binds; widen that (kernbench ccl --wide and "
            "kernbench run --explain name it), or fit the other parameters alone with --fit."
        )


def _needs(unknowns: Sequence[Unknown]) -> str:
    return "; ".join(f"measure for {unknown.name} also {unknown.needs}" for unknown in unknowns)


def loose_unknowns(elasticities: Matrix) -> list[bool]:
    """Tell of each parameter whether errors of NOISE leave it open; an empty list where they leave none."""
    _, singular, directions = np.linalg.svd(elasticities, full_matrices=False)
    scale = float(singular[0]) if singular.size else 0.0
    if not scale:
        return [True] * elasticities.shape[1]
    variance = np.zeros(elasticities.shape[1])
    for value, direction in zip(singular, directions, strict=True):
        # along a direction in which nothing changes a parameter may be anything
        variance += (direction / max(float(value), _DEPENDENT * scale)) ** 2
    spread = NOISE * np.sqrt(variance)
    found = [bool(one) for one in spread > _LOOSE]
    return found if any(found) else []
