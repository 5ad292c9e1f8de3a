"""Fit parameters within limits, so that simulated times come closest to measured ones in relative terms.

A time is nearly linear in latencies and in one over bandwidths. Closed forms say how steeply; the machine is simulated
at the values reached, and what that takes replaces the closed form's level, and from round to round its slope. So the
fit is that of the simulation, and closed forms only point the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from attrs import field, frozen

from kernbench_builtin.calibrate.identification import Matrix, require_identified, require_simulated
from kernbench_builtin.calibrate.least_squares import bounded_least_squares
from kernbench_builtin.calibrate.plausibility import Linear, fitting_factor, require_within
from kernbench_builtin.calibrate.search import FitSearch, Simulate, Vector
from kernbench_core.calibration import Unknown

_AT_LIMIT = 1e-6
_STEPS = 0.015
"""By which part a value is off where simulated times have steps, however many rows there are."""
_NEIGHBOURS = 3
"""Rows on either side of one that may be off for the reason that it is."""
_GLANCE = 2
"""Steps after which it is plain whether rows ran in the way that is simulated."""

Slopes = Callable[[Vector], Matrix]
"""Give d time / d term of each row and term."""


@frozen
class FittedValue:
    """A fitted parameter: its value, its error as a part of it, and the limit that it lies on, if it does.

    The true value is within the `error` in 95 of 100 fits. It is None where there are no more measurements than
    parameters.
    """

    unknown: Unknown
    value: float
    error: float | None
    limit: str | None = None


@frozen
class Fit:
    """The fitted parameters, and the simulated time of each row in ns; `rounds` is how often all were simulated.

    `factor` is a power of 1000 by which all times would fit far better, None where there is none.
    """

    values: tuple[FittedValue, ...]
    simulated: Vector = field(eq=False)
    rounds: int
    factor: float | None = None


def terms_of(unknowns: Sequence[Unknown], values: Sequence[float]) -> Vector:
    """Return what times are linear in: values, or one over them."""
    return np.array([1 / v if u.inverse else v for u, v in zip(unknowns, values, strict=True)])


def values_of(unknowns: Sequence[Unknown], terms: Vector) -> list[float]:
    """Return the values of parameters from the terms that times are linear in."""
    return [float(1 / t if u.inverse else t) for u, t in zip(unknowns, terms, strict=True)]


def fit(
    unknowns: Sequence[Unknown], measured: Vector, slopes: Slopes, simulate: Simulate, near: Simulate | None = None
) -> Fit:
    """Fit `unknowns` to `measured` times (ns), each of another thing.

    `near` gives times in less work that are a few % off: the search is by those, and the last steps by all.

    Raises:
        UsageError: the rows do not identify a parameter, by the closed forms or as the machine simulates them.
    """
    low, high = _ends(unknowns)
    search, at, steep = _search(unknowns, measured, slopes, near or simulate)
    search.run(at, steep)
    limits = _told(unknowns, search, low, high)
    if near is not None:
        first, search = search, FitSearch(measured, low, high, _floor(low, high), simulate)
        search.refine(first.at, first.matrix, first.took)
        limits = _told(unknowns, search, low, high)
    line = Linear(search.matrix, measured, low, high, search.took - search.matrix @ search.at)
    return Fit(_values(unknowns, search, measured, limits), search.took, search.rounds, fitting_factor(line))


def _told(unknowns: Sequence[Unknown], search: FitSearch, low: Vector, high: Vector) -> list[str | None]:
    """Return the limit of each term that lies on one; raise UsageError where rows leave a term open."""
    limits = [_limit(u, t, a, b) for u, t, a, b in zip(unknowns, search.at, low, high, strict=True)]
    told = [one is None or at == end for one, at, end in zip(limits, search.at, high, strict=True)]
    require_simulated(unknowns, search.elasticities, told, search.far_alike())
    return limits


def glance(
    unknowns: Sequence[Unknown], measured: Vector, slopes: Slopes, simulate: Simulate, enough: float = np.inf
) -> float:
    """Return how far rows are off, as a root mean square, where a fit is after its first steps; raise as `fit`.

    Where it is soon plain that it will not be `enough`, that is what the next step promises.
    """
    search, at, steep = _search(unknowns, measured, slopes, simulate)
    return search.begin(at, steep, _GLANCE, enough)


def _search(
    unknowns: Sequence[Unknown], measured: Vector, slopes: Slopes, simulate: Simulate
) -> tuple[FitSearch, Vector, Matrix]:
    """Return a search, and where closed forms have it begin, with their slopes there."""
    low, high = _ends(unknowns)
    at = _start(measured, slopes, middle_of(unknowns), low, high)
    floor = _floor(low, high)
    steep = slopes(at)
    require_within(unknowns, Linear(steep, measured, low, high), floor, values_of)
    require_identified(unknowns, steep * np.maximum(at, floor) / measured[:, None])
    return FitSearch(measured, low, high, floor, simulate), at, steep


def closed_elasticities(unknowns: Sequence[Unknown], measured: Vector, slopes: Slopes) -> tuple[Matrix, Vector]:
    """Return by which part closed forms change with each term, where they alone would end; and what was measured."""
    low, high = _ends(unknowns)
    at = _start(measured, slopes, middle_of(unknowns), low, high)
    return slopes(at) * np.maximum(at, _floor(low, high)) / measured[:, None], measured


def middle_of(unknowns: Sequence[Unknown]) -> Vector:
    """Return terms between their limits, whatever powers of ten are between them."""
    low, high = _ends(unknowns)
    return np.sqrt(np.maximum(low, high * 1e-6) * high)


def _ends(unknowns: Sequence[Unknown]) -> tuple[Vector, Vector]:
    ends = np.array([sorted(terms_of((u, u), (u.low, u.high))) for u in unknowns])
    return ends[:, 0], ends[:, 1]


def _floor(low: Vector, high: Vector) -> Vector:
    """Return what must be noticed of a term that may be none: a hundredth of its limit."""
    return np.where(low == 0, high / 100, 0)


def _start(measured: Vector, slopes: Slopes, at: Vector, low: Vector, high: Vector) -> Vector:
    """Return where closed forms alone would end, which may be curved."""
    for _ in range(3):
        matrix = slopes(at) / measured[:, None]
        at = bounded_least_squares(matrix, np.ones(len(measured)), low, high)
    return at


def _values(
    unknowns: Sequence[Unknown], search: FitSearch, measured: Vector, limits: Sequence[str | None]
) -> tuple[FittedValue, ...]:
    free = [index for index, limit in enumerate(limits) if limit is None]
    left = len(measured) - len(free)
    errors: dict[int, float] = {}
    if free and left > 0:
        part = (search.matrix * search.at / measured[:, None])[:, free]
        spread = _spread(part, search.took / measured - 1, search.doubt, measured)
        steps = 0.0 if search.exact else _STEPS
        errors = {index: float(np.hypot(np.hypot(one, steps), search.left[index]))
                  for index, one in zip(free, spread, strict=True)}  # fmt: skip
    found = zip(unknowns, values_of(unknowns, search.at), limits, strict=True)
    return tuple(FittedValue(u, v, errors.get(index), limit) for index, (u, v, limit) in enumerate(found))


def _spread(part: Matrix, off: Vector, doubt: float, measured: Vector) -> list[float]:
    """Return for each term the part of it within which 95 of 100 fits have the true one.

    `part` has the elasticities of rows, `off` how far they are off. It is by the scatter of rows, as of least squares,
    or where that is more by that of rows whose neighbours in time are off the same way (Newey and West, 1987).
    """
    count, terms = part.shape
    left = count - terms
    inverse = np.linalg.pinv(part.T @ part)
    order = np.argsort(measured, kind="stable")
    pull = (part * off[:, None])[order]
    apart = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    alike = pull.T @ np.maximum(0.0, 1 - apart / (_NEIGHBOURS + 1)) @ pull
    alone = np.diag(inverse) * doubt / left
    together = np.diag(inverse @ alike @ inverse) * count / left
    return [float(one) for one in _wide(left) * np.sqrt(np.maximum(np.maximum(alone, together), 0.0))]


def _wide(left: int) -> float:
    """Return how many standard errors 95 of 100 are within (Student's t), with so many rows more than terms."""
    few = (12.71, 4.30, 3.18, 2.78)
    return few[left - 1] if left <= len(few) else 1.96 + 2.37 / left + 2.8 / left**2


def _limit(unknown: Unknown, term: float, low: float, high: float) -> str | None:
    """Say which limit of its value a term lies on."""
    close = _AT_LIMIT * (high - low)
    if term <= low + close:
        return "high" if unknown.inverse else "low"
    if term >= high - close:
        return "low" if unknown.inverse else "high"
    return None
