"""Optuna's study of one search: it is asked for values of the axes, and told what came of them.

Its journal holds all that it knows. What a trial draws depends on what was told before, on the seed and on the number
of the trial alone, so that a search which was killed goes on as if it had not been.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
from attrs import frozen

from kernbench_builtin.sweeps.axes import Axis, value_text
from kernbench_builtin.sweeps.ranges import in_numbers
from kernbench_builtin.sweeps.search.method import SearchMethod
from kernbench_core.errors import UsageError

JOURNAL: Final = "search.journal"
_STUDY: Final = "sweep"
_BATCH, _POINT, _SKIPPED = "batch", "point", "skipped"  # the first is `journal.ASKED`
"""What a trial says of itself in the journal: when it was asked for, the point's key, and whether it was left out."""


@frozen
class SearchTrial:
    """One trial: its number from 0, and the value of each axis. `batch` counts how often trials were asked for."""

    number: int
    values: Mapping[str, Any]
    batch: int


class PointStudy:
    """A search in a journal, new or as it was left. Raise UsageError where Optuna is missing or the journal damaged.

    `maximise` says of each objective whether it is to be large.
    """

    def __init__(
        self, path: Path, method: SearchMethod, axes: Sequence[Axis], maximise: Sequence[bool], seed: int
    ) -> None:
        self._optuna = _imported()
        self._method, self._seed = method, seed
        self._choices = [_choice(axis) for axis in axes]
        self._known: dict[int, SearchTrial] = {}
        with self._quiet():
            self._distributions = {each.axis.name: each.distribution(self._optuna) for each in self._choices}
            self._study = self._opened(path, ["maximize" if each else "minimize" for each in maximise])

    @property
    def trials(self) -> list[SearchTrial]:
        """All trials that were not left out, in their order."""
        return [self._trial(each) for each in self._all() if not each.user_attrs.get(_SKIPPED)]

    @property
    def pending(self) -> list[SearchTrial]:
        """The trials that were asked for and not told of."""
        return [self._trial(each) for each in self._all() if not each.state.is_finished()]

    @property
    def completed(self) -> int:
        """How many trials were told values."""
        return sum(each.state == self._optuna.trial.TrialState.COMPLETE for each in self._all())

    @property
    def skipped(self) -> int:
        """How many trials were left out."""
        return sum(bool(each.user_attrs.get(_SKIPPED)) for each in self._all())

    @contextmanager
    def step(self) -> Iterator[None]:
        """Have all that is asked and told in the block in the journal at its end; OSError where that fails."""
        with self._journal.step():
            yield

    def ask(self, batch: int) -> SearchTrial:
        """Return the next trial."""
        with self.step(), self._quiet():
            number = len(self._all())
            self._study.sampler = self._sampler(number)
            found = self._study.ask(self._distributions)
            found.set_user_attr(_BATCH, batch)  # the last of it in the journal: without, it was cut short
            return self._trial(self._all()[number])

    def tell(self, trial: SearchTrial, key: str, values: Sequence[float] | None) -> None:
        """Say what came of a trial, which was of the point `key`: its objectives, or None where it has none."""
        state = self._optuna.trial.TrialState
        with self.step(), self._quiet():
            self._mark(trial, _POINT, key)
            self._study.sampler = self._sampler(trial.number)
            if values is None:
                self._study.tell(trial.number, state=state.FAIL)
            else:
                self._study.tell(trial.number, list(values))

    def skip(self, trial: SearchTrial) -> None:
        """Say that a trial was left out, as a constraint does not hold of it."""
        with self.step(), self._quiet():
            self._mark(trial, _SKIPPED, True)
            self._study.tell(trial.number, state=self._optuna.trial.TrialState.FAIL)

    def _mark(self, trial: SearchTrial, name: str, value: object) -> None:
        number = self._storage.get_trial_id_from_study_id_trial_number(self._id, trial.number)
        self._storage.set_trial_user_attr(number, name, value)

    def _all(self) -> list[Any]:
        found: list[Any] = self._study.get_trials(deepcopy=False)
        return found

    def _trial(self, frozen: Any) -> SearchTrial:
        known = self._known.get(frozen.number)
        if known is None:
            values = {each.axis.name: each.value(frozen.params[each.axis.name]) for each in self._choices}
            known = self._known[frozen.number] = SearchTrial(frozen.number, values, frozen.user_attrs[_BATCH])
        return known

    def _sampler(self, number: int) -> Any:
        """Return a sampler whose draws depend on the seed and on the number of the trial."""
        samplers = self._optuna.samplers
        seed = int(np.random.SeedSequence([self._seed, number]).generate_state(1)[0])
        if self._method.sampler == "nsga2":
            return samplers.NSGAIISampler(population_size=self._method.population, seed=seed)
        return (samplers.TPESampler if self._method.sampler == "tpe" else samplers.RandomSampler)(seed=seed)

    def _opened(self, path: Path, directions: Sequence[str]) -> Any:
        from optuna.storages import JournalStorage

        from kernbench_builtin.sweeps.search.journal import SearchJournal

        try:
            self._journal = SearchJournal(path)
            self._storage = JournalStorage(self._journal)
            found = self._optuna.create_study(
                storage=self._storage,
                study_name=_STUDY,
                directions=list(directions),
                sampler=self._sampler(0),
                load_if_exists=True,
            )
            self._id = self._storage.get_study_id_from_name(_STUDY)
            _ = [self._trial(each) for each in found.get_trials(deepcopy=False)]
        except (ValueError, LookupError, TypeError, AttributeError, AssertionError):
            raise UsageError(
                f"{str(path)!r} must be the journal of this search as Optuna wrote it, and is damaged; remove it: the "
                "search begins anew, and no recorded point runs again."
            ) from None
        return found

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
