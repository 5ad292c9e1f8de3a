"""Carry a search out: ask for trials, run the points that have no record, and tell what came of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import define, evolve, field, frozen

from kernbench_builtin.sweeps.drive import OnPoints, OnRecord, jobs_left, record_all
from kernbench_builtin.sweeps.executors.base import Executor
from kernbench_builtin.sweeps.folder import SweepFolder
from kernbench_builtin.sweeps.points import SweepPoint, point_of
from kernbench_builtin.sweeps.search.method import SearchMethod
from kernbench_builtin.sweeps.search.study import PointStudy, SearchTrial
from kernbench_core.errors import UsageError

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
    """A search in the folder of a sweep, from its first trial on: points that are recorded are told and not run.

    `allowed` says of a point whether the constraints hold, `on_points` is called with points as they are chosen,
    `on_record` with each new record, and `processes` is how many points are carried out at once.
    """

    folder: SweepFolder
    study: PointStudy
    method: SearchMethod
    executor: Executor
    allowed: Callable[[SweepPoint], bool]
    on_points: OnPoints
    on_record: OnRecord
    processes: int = 1
    retry_failed: bool = False
    points: dict[str, SweepPoint] = field(factory=dict, init=False)
    """The points that were asked for, by key, in the order in which they first were."""
    _skipped: int = field(default=0, init=False)
    _recorded: dict[int, str] = field(init=False)
    """The keys of points by their numbers."""

    @_recorded.default
    def _of_folder(self) -> dict[int, str]:
        return {record["index"]: key for key, record in self.folder.records.items()}

    def run(self) -> SearchOutcome:
        """Carry out all trials.

        Raise UsageError where the constraints hold nearly nowhere. What was recorded until then stays.
        """
        trials = 0
        while batch := self._batch(self.method.trials - trials):
            trials += len(batch)
            known = len(self.points)
            points = [self._point(trial) for trial in batch]
            fresh = list(self.points.values())[known:]
            self.on_points(fresh)
            jobs = jobs_left(self.folder, self.folder.plan, fresh, retry_failed=self.retry_failed)
            record_all(self.folder, jobs, self.executor, self.on_record)
            for trial, point in zip(batch, points, strict=True):
                self.study.tell(trial, objectives_of(self.folder.records[point.key]))
        return SearchOutcome(trials, trials - self.study.completed, len(self.points), self._skipped)

    def _batch(self, left: int) -> list[SearchTrial]:
        """Return the trials to be told of next, as many as may be asked for before that."""
        size = min(self.method.batch(self.study.completed, self.processes), left)
        return [self._next_trial() for _ in range(size)]

    def _next_trial(self) -> SearchTrial:
        for _ in range(_MOST_SKIPPED):
            trial = self.study.ask()
            if self.allowed(point_of(self.folder.plan, trial.values, 0)):
                return trial
            self.study.tell(trial, None)
            self._skipped += 1
        raise UsageError(
            f"--where must be true for some points, but is false for the last {_MOST_SKIPPED:,} that the search chose; "
            "give other values, or drop a --where."
        )

    def _point(self, trial: SearchTrial) -> SweepPoint:
        """Return the point of a trial, numbered by when it was first asked for.

        Where points were tried again the search may go another way: then a number may be taken by another record.
        """
        point = point_of(self.folder.plan, trial.values, len(self.points))
        if point.key not in self.points:
            if self._recorded.get(point.index, point.key) != point.key:
                point = evolve(point, index=max(self._recorded) + 1)
            self._recorded[point.index] = point.key
        return self.points.setdefault(point.key, point)


def objectives_of(record: Mapping[str, Any]) -> list[float] | None:
    """Return the objectives of a point that is right, in their order; None where it is not, or one has no value."""
    found = list(record["objectives"].values())
    return found if record["status"] == "ok" and None not in found else None
