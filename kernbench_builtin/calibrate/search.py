"""The search for the terms whose simulated times come closest to measured ones, in few simulations.

Times are nearly linear in terms, but for kinks, where another part of the machine begins to bind, and for small steps.
So a step is believed only as far as it was tried: one that comes no closer is taken again in a smaller box, with what
it told of slopes, and in the end slopes are those of simulations a little beside the best terms.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernbench_builtin.calibrate.identification import LOOSE, NOISE, Matrix, loose_terms
from kernbench_builtin.calibrate.least_squares import bounded_least_squares
from kernbench_builtin.calibrate.simplex import nelder_mead

_QUICK = 8
"""Simulations of all rows, at most, before slopes are looked at."""
_MOST = 24
"""Simulations of all rows after which no other search for better terms begins."""
_GAIN = 1e-3
"""A step that promises to take less than this part from the sum of squared errors is none."""
_WORTH = 0.01
"""A search that took less than this part from it is the last."""
_EXACT = 1e-8
"""A mean squared error that is none: times a ten-thousandth off."""
_TELLING = 0.02
"""Steps that change no time by more than this part of it say nothing of slopes: contention alone moves times by %."""
_ASIDE = 0.05
"""By which part of it a term is changed to see how steep simulated times are: more than contention alone moves them."""
_SMALLEST = 0.01
"""Boxes of less than this part of each term are not tried."""
_CLOSE = 0.05
"""Root mean squares of the error: fits that are closer, and with terms open by less than `_OPEN`, are the only ones."""
_REFUSED = 2 * NOISE
"""Fits that are closer, and with terms open by more than `LOOSE`, are refused."""
_OPEN = 0.1
_APART = 4.0
"""So many times the sum of squared errors is so much worse that kinks do not make up for it."""
_PROMISED = 0.05
"""A step that promises less than this part of the sum of squared errors shows no kink."""
_FINE = 0.003
"""A root mean square of the error that is finer than the steps of simulated times: no kink is looked for."""
_NO_STEP = 0.01
"""A part of each term by which no further step is made where a round is dear: an error stated is 1.5 % or more."""
_NO_SIGMA = 0.5
"""The same in standard errors of a term: an error stated is two or more."""
_FOLDS = 12
"""Steps of a search without slopes, at most."""
_IDLE = 1e-9
"""A term that changes each time by less than this part of it, from limit to limit, changes none but by rounding."""
_FAR = LOOSE
"""A term that is changed by this part of it is another value."""

Vector = Matrix
Simulate = Callable[[Vector], Vector]
"""Give the simulated times at a vector of terms, in ns."""


class FitSearch:
    """The best terms so far, the times there, and how steep times are, as far as is known."""

    def __init__(self, measured: Vector, low: Vector, high: Vector, floor: Vector, simulate: Simulate) -> None:
        self._measured, self._low, self._high, self._floor = measured, low, high, floor
        self._simulate = simulate
        self.tried: list[tuple[Vector, float]] = []
        self.at = self.took = self.matrix = measured
        self.left = np.zeros(len(low))  # by which part of each term a last step was not made
        self.badness = np.inf

    @property
    def rounds(self) -> int:
        """How often all rows were simulated."""
        return len(self.tried)

    @property
    def elasticities(self) -> Matrix:
        """By which part each time changes when a term does by a whole; a term of none counts as its floor."""
        return self.matrix * self._sizes() / self._measured[:, None]

    def far_alike(self) -> list[bool]:
        """Tell of each term whether one far from the best was tried that fits as well, for errors of NOISE."""
        alike = np.array([at for at, badness in self.tried if badness - self.badness < NOISE**2])
        return [bool(one) for one in np.any(np.abs(alike - self.at) >= _FAR * self._sizes() * (1 - 1e-9), axis=0)]

    @property
    def doubt(self) -> float:
        """The sum of squared errors that other terms may have as well: simulated times have steps, and are no lines."""
        return self.badness if self.exact else max(self.badness, len(self._measured) * _FINE**2)

    def run(self, at: Vector, matrix: Matrix) -> None:
        """Search from terms with the slopes of closed forms; in the end slopes are the simulation's."""
        self.begin(at, matrix, _QUICK)
        self._settle()
        while not self._refused() and self.rounds < _MOST and self._look_far():
            self._settle()
        if not self._refused() and self._stuck():
            self._fold()
            self._look_around()

    def begin(self, at: Vector, matrix: Matrix, most: int, enough: float = np.inf) -> float:
        """Step from terms so often at most, as `run` begins; return the root mean square of the errors then.

        Where the next step promises more than `enough`, it is not made, and what it promises is returned.
        """
        self.matrix = matrix
        self._try(at)
        promised = self._expected(self._nearest(self._low, self._high))
        if promised > len(self.took) * enough**2:
            return float(np.sqrt(promised / len(self.took)))
        self._descend(np.inf, most)
        return float(np.sqrt(self._mean_square()))

    def refine(self, at: Vector, matrix: Matrix, took: Vector) -> None:
        """Step from terms that a search of nearly the same times ended at, with its slopes, until steps are small.

        `took` are its times there. Where rows are off by noise, steps are as small as no error tells of soon.
        """
        after = self._try(at)
        self.matrix = matrix * (after / took)[:, None]
        small = np.maximum(_NO_STEP, _NO_SIGMA * self._sigmas())
        self._descend(_FAR, _MOST, small)
        self.left = np.minimum(small, np.abs(self._nearest(self._low, self._high) - self.at) / self._sizes())

    def _sigmas(self) -> Vector:
        """Return the standard error of each term as a part of it, of rows that are off each for itself."""
        rows, terms = self.matrix.shape
        alone = np.diag(np.linalg.pinv(self.elasticities.T @ self.elasticities)) * self.badness / max(rows - terms, 1)
        return np.asarray(np.sqrt(np.maximum(alone, 0.0)))

    def _settle(self) -> None:
        """Look around and descend until that gains little; slopes are of close by in the end."""
        while True:
            self._look_around()
            if self._refused():
                return
            here, before = self.at, self.badness
            self._descend(_FAR, _MOST - self.rounds)
            if self.at is here:
                return
            if float(np.max(np.abs(self.at - here) / self._sizes())) <= _ASIDE / 2:
                return
            if self.badness > (1 - _WORTH) * before or self.exact or self.rounds >= _MOST:
                break
        self._look_around()

    def _descend(self, reach: float, most: int, least: Vector | float = 0.0) -> None:
        """Step to the least squares of what is known, in boxes that shrink where that comes no closer.

        The first one has a `reach` of so many times each term. Steps of less than a part `least` of each are none,
        unless times are as good as those measured.
        """
        last = self.rounds + most
        while self.rounds < last and reach > _SMALLEST and not self.exact:
            box = np.full(len(self.at), np.inf) if np.isinf(reach) else reach * self._sizes()
            target = self._nearest(np.maximum(self._low, self.at - box), np.minimum(self._high, self.at + box))
            step = target - self.at
            if self.badness - self._expected(target) <= _GAIN * self.badness:
                return
            here, took, parts = self.at, self.took, np.abs(step) / self._sizes()
            part = float(np.max(parts))
            if np.all(parts < least) and self._expected(target) > len(took) * _FINE**2:
                return
            after = self._try(target)
            self.matrix = _learnt(self.matrix, step, after - took, self._measured)
            reach = min(part, 1.0) / 3 if self.at is here else 2 * max(reach, part)

    def _look_around(self) -> None:
        """Simulate a little beside the best terms, one after the other, for how steep times are there in truth."""
        here, took, matrix = self.at, self.took, self.matrix.copy()
        for index in range(len(here)):
            aside = min(here[index] * (1 + _ASIDE), self._high[index])
            aside = aside if aside > here[index] else max(here[index] * (1 - _ASIDE), self._low[index])
            if here[index] > 0 and aside != here[index]:
                beside = here.copy()
                beside[index] = aside
                matrix[:, index] = (self._try(beside) - took) / (aside - here[index])
        self.matrix = matrix

    def _look_far(self) -> bool:
        """Simulate far from the best terms where others may fit as well; tell whether they fit better.

        That is where a term is open, or where no terms fit closely, and slopes do not say that these fit far worse.
        """
        open_ = loose_terms(self.elasticities, _OPEN)
        far_off = self._mean_square() > _CLOSE**2
        here = self.at
        for index in range(len(here)):
            if not (open_[index] or far_off) or here[index] <= self._floor[index] * _FAR:
                continue
            for part in (1 + _FAR, 1 - _FAR):
                low, high = self._low.copy(), self._high.copy()
                low[index] = high[index] = min(max(here[index] * part, low[index]), high[index])
                there = self._nearest(low, high)
                if open_[index] or self._expected(there) < _APART * self.badness:
                    self._try(there)
        return self.at is not here

    def _refused(self) -> bool:
        """Tell whether these terms are close, but open, as others would be that are closer."""
        return self._mean_square() < _REFUSED**2 and any(loose_terms(self.elasticities, LOOSE))

    def _stuck(self) -> bool:
        """Tell whether slopes promise a better fit that no step found: that is so at a kink."""
        promised = self._expected(self._nearest(self._low, self._high))
        return self._mean_square() > _FINE**2 and promised < (1 - _PROMISED) * self.badness

    def _fold(self) -> None:
        """Search around the best terms without slopes, in parts of them."""
        here, sizes = self.at, self._sizes()

        def value(part: Vector) -> float:
            self._try(np.clip(here + part * sizes, self._low, self._high))
            return self.tried[-1][1]

        corners = [np.zeros(len(here)), *np.diag(np.full(len(here), _ASIDE))]
        nelder_mead(value, corners, _FOLDS, _SMALLEST / 5)

    def _nearest(self, low: Vector, high: Vector) -> Vector:
        """Return the least squares of what is known in a box; a term that changes nothing stays where it is."""
        most = np.abs(self.matrix / self._measured[:, None]).max(axis=0) * (self._high - self._low)
        idle = (most < _IDLE) & (low <= self.at) & (self.at <= high)
        low, high = np.where(idle, self.at, low), np.where(idle, self.at, high)
        right = (self._measured - self.took + self.matrix @ self.at) / self._measured
        return bounded_least_squares(self.matrix / self._measured[:, None], right, low, high)

    def _expected(self, at: Vector) -> float:
        return _badness(self.took + self.matrix @ (at - self.at), self._measured)

    def _sizes(self) -> Vector:
        return np.maximum(self.at, self._floor)

    def _mean_square(self) -> float:
        return self.badness / len(self._measured)

    @property
    def exact(self) -> bool:
        """Whether simulated times are those measured, so that no step of them is in the way."""
        return self._mean_square() <= _EXACT

    def _try(self, at: Vector) -> Vector:
        """Simulate at terms, and keep them if they are the best."""
        took = self._simulate(at)
        badness = _badness(took, self._measured)
        self.tried.append((at, badness))
        if badness < self.badness:
            self.at, self.took, self.badness = at, took, badness
        return took


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
