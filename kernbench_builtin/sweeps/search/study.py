"""Optuna's study of one search: it is asked for values of the axes, and told what came of them.

What a trial draws depends on what was told before, on the seed and on the number of the trial alone. So nothing of a
study is kept: one that is asked and told the same again, of points that are recorded, draws the same again.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
from attrs import frozen

from kernbench_builtin.sweeps.axes import Axis, value_text
from kernbench_builtin.sweeps.ranges import in_numbers
from kernbench_builtin.sweeps.search.method import SearchMethod
from kernbench_core.errors import UsageError


@frozen
class SearchTrial:
    """One trial: its number from 0, those left out among them, and the value of each axis."""

    number: int
    values: Mapping[str, Any]


class PointStudy:
    """A search that begins. Raise UsageError where Optuna is missing.

    `maximise` says of each objective whether it is to be large. `completed` counts the trials that were told values.
    """

    def __init__(self, method: SearchMethod, axes: Sequence[Axis], maximise: Sequence[bool], seed: int) -> None:
        self._optuna = _imported()
        self._method, self._seed = method, seed
        self._choices = [_choice(axis) for axis in axes]
        self._asked = self.completed = 0
        with self._quiet():
            self._distributions = {each.axis.name: each.distribution(self._optuna) for each in self._choices}
            self._study = self._optuna.create_study(
                directions=["maximize" if each else "minimize" for each in maximise], sampler=self._sampler(0)
            )

    def ask(self) -> SearchTrial:
        """Return the next trial."""
        with self._quiet():
            self._study.sampler = self._sampler(self._asked)
            found = self._study.ask(self._distributions)
        self._asked += 1
        return SearchTrial(
            found.number, {each.axis.name: each.value(found.params[each.axis.name]) for each in self._choices}
        )

    def tell(self, trial: SearchTrial, values: Sequence[float] | None) -> None:
        """Say what came of a trial: its objectives, or None where it has none, or was left out."""
        with self._quiet():
            self._study.sampler = self._sampler(trial.number)
            if values is None:
                self._study.tell(trial.number, state=self._optuna.trial.TrialState.FAIL)
            else:
                self._study.tell(trial.number, list(values))
                self.completed += 1

    def _sampler(self, number: int) -> Any:
        """Return a sampler whose draws depend on the seed and on the number of the trial."""
        samplers = self._optuna.samplers
        seed = int(np.random.SeedSequence([self._seed, number]).generate_state(1)[0])
        if self._method.sampler == "nsga2":
            return samplers.NSGAIISampler(population_size=self._method.population, seed=seed)
        return (samplers.TPESampler if self._method.sampler == "tpe" else samplers.RandomSampler)(seed=seed)

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """Keep what Optuna logs and warns of to itself, and leave its settings as they were."""
        logging = self._optuna.logging
        level = logging.get_verbosity()
        logging.set_verbosity(logging.ERROR)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        finally:
            logging.set_verbosity(level)


@frozen
class _Choice:
    """How Optuna is to choose of one axis: by the number of a value, or a number of its range."""

    axis: Axis
    ordered: tuple[Any, ...]
    """The values, from the smallest; empty for a range, and for words, which have no order."""

    def distribution(self, optuna: Any) -> Any:
        """Return the distribution of the axis."""
        of = optuna.distributions
        if self.axis.range is not None:
            low, high = (in_numbers(end) for end in self.axis.range.ends())
            log = self.axis.range.scale == "log"
            if self.axis.range.whole:
                return of.IntDistribution(int(low or 0), int(high or 0), log=log)
            return of.FloatDistribution(low, high, log=log)
        if self.ordered:
            return of.IntDistribution(0, len(self.ordered) - 1)
        return of.CategoricalDistribution([value_text(value) for value in self.axis.values])

    def value(self, chosen: Any) -> Any:
        """Return the value of the axis that Optuna chose."""
        if self.axis.range is not None:
            return self.axis.range.written(Fraction(chosen))
        if self.ordered:
            return self.ordered[chosen]
        return next(value for value in self.axis.values if value_text(value) == chosen)


def _choice(axis: Axis) -> _Choice:
    numbers = [None if isinstance(value, bool) else in_numbers(value) for value in axis.values]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers) or len(set(known)) < len(known):
        return _Choice(axis, ())
    order = sorted(range(len(known)), key=known.__getitem__)
    return _Choice(axis, tuple(axis.values[at] for at in order))


def _imported() -> Any:
    try:
        import optuna
    except ImportError:
        raise UsageError("--search needs Optuna, which is not installed; pip install 'kernbench[dse]'.") from None
    return optuna
