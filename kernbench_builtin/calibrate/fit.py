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
from kernbench_core.calibration import Unknown

ROUNDS = 8
"""Simulations of all rows before slopes are looked at, and after, at most."""
_GAIN = 1e-3
"""A step that promises to take less than this part from the sum of squared errors ends the fit."""
_EXACT = 1e-8
"""A mean squared error that is none: times a ten-thousandth off."""
_FAILURES = 2
"""Steps, each half of the one before, that may come no closer before the fit ends."""
_TELLING = 0.02
"""Steps that change no time by more than this part of it say nothing of slopes: contention alone moves times by %."""
_ASIDE = 0.05
"""By which part of it a term is changed to see how steep simulated times are: more than contention alone moves them."""
_AT_LIMIT = 1e-6

Vector = Matrix
Simulate = Callable[[Vector], Vector]
"""Give the simulated times at a vector of terms, in ns."""
Slopes = Callable[[Vector], Matrix]
"""Give d time / d term of each row and term."""


@frozen
class FittedValue:
    """A fitted parameter: its value, its standard error as a part of it, and the limit that it lies on, if it does.

    `error` is None where there are no more measurements than parameters.
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


def fit(unknowns: Sequence[Unknown], measured: Vector, cases: int, slopes: Slopes, simulate: Simulate) -> Fit:
    """Fit `unknowns` to `measured` times (ns) of `cases` different things.

    Raises:
        UsageError: the rows do not identify a parameter, by the closed forms or as the machine simulates them.
    """
    ends = np.array([sorted(terms_of((u, u), (u.low, u.high))) for u in unknowns])
    low, high = ends[:, 0], ends[:, 1]
    at = _start(measured, slopes, low, high)
    floor = np.where(low == 0, high / 100, 0)  # of what may be none a hundredth of its limit must be noticed
    steep = slopes(at)
    require_within(unknowns, Linear(steep, measured, low, high), floor, values_of)
    require_identified(unknowns, steep * np.maximum(at, floor) / measured[:, None], cases)
    search = _Search(measured, low, high, simulate)
    search.begin(at, steep)
    search.go_on()
    search.look_around()
    search.go_on()
    limits = [_limit(u, t, a, b) for u, t, a, b in zip(unknowns, search.at, low, high, strict=True)]
    elasticities = search.matrix * np.maximum(search.at, floor) / measured[:, None]
    require_simulated(unknowns, elasticities, [limit is None for limit in limits])
    near = Linear(search.matrix, measured, low, high, search.took - search.matrix @ search.at)
    return Fit(_values(unknowns, search, measured, limits), search.took, search.rounds, fitting_factor(near))


class _Search:
    """The best terms so far, the times there, and how steep times are, as far as is known."""

    def __init__(self, measured: Vector, low: Vector, high: Vector, simulate: Simulate) -> None:
        self._measured, self._low, self._high = measured, low, high
        self._simulate = simulate
        self.rounds = 0
        self.at = self.took = self.matrix = measured
        self.badness = np.inf

    def begin(self, at: Vector, matrix: Matrix) -> None:
        """Simulate at the first terms."""
        self.at, self.took, self.matrix = at, self._times(at), matrix
        self.badness = _badness(self.took, self._measured)

    def go_on(self) -> None:
        """Step to the least squares of what is known, halving steps that come no closer, and learn from each."""
        measured, reach, most = self._measured, 1.0, self.rounds + ROUNDS
        while self.rounds < most and reach > 0.5**_FAILURES:
            relative = self.matrix / measured[:, None]
            right = (measured - self.took + self.matrix @ self.at) / measured
            step = reach * (bounded_least_squares(relative, right, self._low, self._high) - self.at)
            gain = self.badness - _badness(self.took + self.matrix @ step, measured)
            if gain <= _GAIN * self.badness or self.badness <= _EXACT * len(measured):
                break
            after = self._times(self.at + step)
            self.matrix = _learnt(self.matrix, step, after - self.took, measured)
            badness = _badness(after, measured)
            if badness < self.badness:
                self.at, self.took, self.badness, reach = self.at + step, after, badness, 1.0
            else:
                reach /= 2

    def look_around(self) -> None:
        """Simulate a little beside the best terms, one after the other, for how steep times are there in truth."""
        self.matrix = self.matrix.copy()
        for index in range(len(self.at)):
            here = self.at[index]
            aside = min(here * (1 + _ASIDE), self._high[index])
            aside = aside if aside > here else max(here * (1 - _ASIDE), self._low[index])
            if here > 0 and aside != here:
                beside = self.at.copy()
                beside[index] = aside
                self.matrix[:, index] = (self._times(beside) - self.took) / (aside - here)

    def _times(self, at: Vector) -> Vector:
        self.rounds += 1
        return self._simulate(at)


def _start(measured: Vector, slopes: Slopes, low: Vector, high: Vector) -> Vector:
    """Return where closed forms alone would end, which may be curved."""
    at = np.sqrt(np.maximum(low, high * 1e-6) * high)  # between the limits, whatever powers of ten are between them
    for _ in range(3):
        matrix = slopes(at) / measured[:, None]
        at = bounded_least_squares(matrix, np.ones(len(measured)), low, high)
    return at


def _learnt(matrix: Matrix, step: Vector, change: Vector, measured: Vector) -> Matrix:
    """Return slopes that say of a step what the simulation did (Broyden), where it was long enough to tell."""
    scale = np.abs(matrix / measured[:, None]).max(axis=0)
    scaled = step * scale
    told = np.abs(matrix @ step) / measured
    if float(told.max()) < _TELLING:
        return matrix
    missing = change - matrix @ step
    return matrix + np.outer(missing, scaled * scale / float(scaled @ scaled))


def _badness(took: Vector, measured: Vector) -> float:
    return float(np.sum((took / measured - 1) ** 2))


def _values(
    unknowns: Sequence[Unknown], search: _Search, measured: Vector, limits: Sequence[str | None]
) -> tuple[FittedValue, ...]:
    free = [index for index, limit in enumerate(limits) if limit is None]
    left = len(measured) - len(free)
    errors: dict[int, float] = {}
    if free and left > 0:
        part = (search.matrix * search.at / measured[:, None])[:, free]
        spread = np.linalg.pinv(part.T @ part) * search.badness / left
        errors = {index: float(np.sqrt(max(0.0, spread[n, n]))) for n, index in enumerate(free)}
    found = zip(unknowns, values_of(unknowns, search.at), limits, strict=True)
    return tuple(FittedValue(u, v, errors.get(index), limit) for index, (u, v, limit) in enumerate(found))


def _limit(unknown: Unknown, term: float, low: float, high: float) -> str | None:
    """Say which limit of its value a term lies on."""
    close = _AT_LIMIT * (high - low)
    if term <= low + close:
        return "high" if unknown.inverse else "low"
    if term >= high - close:
        return "low" if unknown.inverse else "high"
    return None
