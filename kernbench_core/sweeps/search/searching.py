"""Carry a search out: ask for trials, run the points that have no record, and tell what came of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from attrs import define, field, frozen

from kernbench_core.errors import UsageError
from kernbench_core.sweeps.evaluate import job_of
from kernbench_core.sweeps.executors.base import Executor
from kernbench_core.sweeps.folder import SweepFolder
from kernbench_core.sweeps.points import SweepPoint, point_of
from kernbench_core.sweeps.search.method import SearchMethod
from kernbench_core.sweeps.search.study import PointStudy, SearchTrial

#: So many trials in a row that a constraint leaves out are the end of a search.
_MOST_SKIPPED: Final = 1000


@frozen
class SearchOutcome:
    """How a search went: its trials, how many of them had no value, the points they were of, and who was left out."""

    trials: int
    failed: int
    points: int
    skipped: int

    def __str__(self) -> str:
        repeated = self.trials - self.points
        parts = [f"{self.trials:,} trials of {self.points:,} points"]
        parts += [f"{repeated:,} repeated"] if repeated else []
        parts += [f"{self.failed:,} without a value"] if self.failed else []
        parts += [f"{self.skipped:,} more left out by --where"] if self.skipped else []
        return ", ".join(parts)


@define
class PointSearch:
    """A search in the folder of a sweep, from where it was left to its last trial.

    `allowed` says of the values of a point whether the constraints hold, `tell` is called with each new record, and
    `processes` is how many points are carried out at once.
    """

    folder: SweepFolder
    study: PointStudy
    method: SearchMethod
    executor: Executor
    allowed: Callable[[SweepPoint], bool]
    tell: Callable[[Mapping[str, Any]], None]
    processes: int = 1
    retry_failed: bool = False
    points: dict[str, SweepPoint] = field(factory=dict, init=False)
    """The points that were asked for, by key, in the order in which they first were."""

    def run(self) -> SearchOutcome:
        """Carry out all trials that are left.

        Raise UsageError where the constraints hold nearly nowhere. What was recorded until then stays.
        """
        told = [self._point(trial) for trial in self.study.trials]
        self._carry_out(told)  # those under way, and any of which somebody removed the record
        if self.retry_failed:
            self._carry_out([point for key, point in self.points.items() if self._is_failed(key)], again=True)
        while batch := self._next_batch():
            self._carry_out([self._point(trial) for trial in batch])
            with self.study.step():
                for trial in batch:
                    self._told(trial)
        trials = self.study.trials
        return SearchOutcome(len(trials), len(trials) - self.study.completed, len(self.points), self.study.skipped)

    def _next_batch(self) -> list[SearchTrial]:
        """Return the trials to be told of next: those under way, and as many more as may be asked for before that."""
        trials, batch = self.study.trials, self.study.pending
        over = len(trials) - len(batch)
        number = batch[0].batch if batch else max((trial.batch for trial in trials), default=-1) + 1
        if any(trial.batch == number for trial in trials[:over]):
            return batch  # it was whole when the first of it was told
        size = min(self.method.batch(self.study.completed, self.processes), self.method.trials - over)
        with self.study.step():
            while len(batch) < size:
                batch.append(self._asked(number))
        return batch

    def _asked(self, batch: int) -> SearchTrial:
        for _ in range(_MOST_SKIPPED):
            trial = self.study.ask(batch)
            if self.allowed(point_of(self.folder.plan, trial.values, 0)):
                self._point(trial)
                return trial
            self.study.skip(trial)
        raise UsageError(
            f"--where must hold of some points, and holds of none of the last {_MOST_SKIPPED:,} that the search chose; "
            "give other values, or drop a --where."
        )

    def _point(self, trial: SearchTrial) -> SweepPoint:
        """Return the point of a trial, numbered by when it was first asked for."""
        point = point_of(self.folder.plan, trial.values, len(self.points))
        return self.points.setdefault(point.key, point)

    def _carry_out(self, points: Sequence[SweepPoint], again: bool = False) -> None:
        """Run those of the points that are not recorded, each once; `again` all of them."""
        wanted = {point.key: point for point in points}
        left = [point for key, point in wanted.items() if again or key not in self.folder.records]
        for record in self.executor.run(job_of(self.folder.plan, point) for point in left):
            self.folder.put(record)
            self.tell(record)

    def _is_failed(self, key: str) -> bool:
        record = self.folder.records.get(key)
        return record is not None and record["status"] not in ("ok", "wrong")

    def _told(self, trial: SearchTrial) -> None:
        key = self._point(trial).key
        self.study.tell(trial, key, objectives_of(self.folder.records[key]))


def objectives_of(record: Mapping[str, Any]) -> list[float] | None:
    """Return the objectives of a point that is right, in their order; None where it is not, or one has no value."""
    found = list(record["objectives"].values())
    return found if record["status"] == "ok" and None not in found else None
