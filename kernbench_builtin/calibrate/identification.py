"""Whether rows of measurements tell parameters apart, asked of closed forms and then of the simulation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kernbench_core.calibration import Unknown
from kernbench_core.errors import UsageError

Matrix = NDArray[np.float64]

NOISE = 0.01
"""The error of a measurement that a fit must be able to bear, as a part of it: clocks and other load, 1 %."""
LOOSE = 0.5
"""A parameter that such errors leave open by more than this part of it is not identified."""
_DEPENDENT = 1e-7
"""Directions in which rows change by less than this part of the largest are none."""


def require_identified(unknowns: Sequence[Unknown], elasticities: Matrix) -> None:
    """Raise UsageError naming each parameter that rows do not identify, and which rows would.

    `elasticities[i, j]` is by which part time i, of another thing each, changes when the term of parameter j does by a
    whole.
    """
    cases = len(elasticities)
    if cases < len(unknowns):
        names = ", ".join(unknown.name for unknown in unknowns)
        raise UsageError(
            f"a fit of {len(unknowns)} parameters ({names}) must have at least as many different measurements, not "
            f"{cases}; {_needs(unknowns)}, or fit fewer with --fit."
        )
    _require_none(unknowns, loose_unknowns(elasticities))


def require_simulated(
    unknowns: Sequence[Unknown], elasticities: Matrix, told: Sequence[bool], far: Sequence[bool]
) -> None:
    """Raise UsageError for a parameter whose value is `told` by the fit, and that simulated rows do not identify.

    `elasticities` are those of the simulation: another part of the machine may bind, whatever the closed forms say.
    `far` says of each parameter whether a value far from the fitted one was simulated and fits as well.
    """
    among = [index for index, one in enumerate(told) if one]
    loose = loose_terms(elasticities[:, among], LOOSE) if among else []
    alone = np.linalg.norm(elasticities, axis=0)
    if any(one and LOOSE * alone[at] < NOISE for at, one in zip(among, loose, strict=True)):
        hidden = [unknown for unknown, own in zip(unknowns, alone, strict=True) if LOOSE * own < NOISE]
        names = " and ".join(unknown.name for unknown in hidden)
        raise UsageError(
            f"{names} cannot be fitted on this machine, because another resource limits these rows; make that one "
            "faster (kernbench ccl --wide and kernbench run --explain name it)"
            f"{', or fit the other parameters alone with --fit' if len(hidden) < len(unknowns) else ''}."
        )
    _require_none([unknowns[at] for at in among], [one or far[at] for at, one in zip(among, loose, strict=True)])


def _require_none(unknowns: Sequence[Unknown], loose: Sequence[bool]) -> None:
    """Raise UsageError naming the parameters that are loose, if there are any."""
    bad = [unknown for unknown, one in zip(unknowns, loose, strict=False) if one]
    if bad:
        names = " and ".join(unknown.name for unknown in bad)
        verb = "is" if len(bad) == 1 else "are"
        raise UsageError(
            f"{names} {verb} not determined by these rows: very different values fit equally well; {_needs(bad)}, or "
            f"keep the machine's value of {'it' if len(bad) == 1 else 'one of them'} by naming the others with --fit."
        )


def _needs(unknowns: Sequence[Unknown]) -> str:
    return "; ".join(f"measure for {unknown.name} also {unknown.needs}" for unknown in unknowns)


def loose_unknowns(elasticities: Matrix) -> list[bool]:
    """Tell of each parameter whether errors of NOISE leave it open; an empty list where they leave none."""
    found = loose_terms(elasticities, LOOSE)
    return found if any(found) else []


def loose_terms(elasticities: Matrix, most: float) -> list[bool]:
    """Tell of each term whether errors of NOISE leave it open by more than a part of it."""
    _, singular, directions = np.linalg.svd(elasticities, full_matrices=False)
    scale = float(singular[0]) if singular.size else 0.0
    if not scale:
        return [True] * elasticities.shape[1]
    variance = np.zeros(elasticities.shape[1])
    for value, direction in zip(singular, directions, strict=True):
        # along a direction in which nothing changes a parameter may be anything
        variance += (direction / max(float(value), _DEPENDENT * scale)) ** 2
    spread = NOISE * np.sqrt(variance)
    return [bool(one) for one in spread > most]
