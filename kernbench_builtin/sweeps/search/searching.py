"""Carry a search out: ask for trials, run the points that have no record, and tell what came of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from attrs import define, field, frozen

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
    """A search in the folder of a sweep, from where it was left to its last trial.

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

    def run(self) -> SearchOutcome:
        """Carry out all trials that are left.

        Raise UsageError where the constraints hold nearly nowhere. What was recorded until then stays.
        """
        asked = [self._point(trial) for trial in self.study.trials]
        self.on_points(list(self.points.values()))
        self._carry_out(asked, again=self.retry_failed)  # those under way, and any whose record somebody removed
        while batch := self._next_batch():
            known = len(self.points)
            points = [self._point(trial) for trial in batch]
            self.on_points(list(self.points.values())[known:])
            self._carry_out(points)
            with self._writing():
                for trial in batch:
                    self._report_trial(trial)
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
        with self._writing():
            while len(batch) < size:
                batch.append(self._next_trial(number))
        return batch

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Have what is asked and told in the block in the journal; UsageError where that fails."""
        with self.folder.writing(), self.study.step():
            yield

    def _next_trial(self, batch: int) -> SearchTrial:
        for _ in range(_MOST_SKIPPED):
            trial = self.study.ask(batch)
            if self.allowed(point_of(self.folder.plan, trial.values, 0)):
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
        """Run those of the points that are not recorded, each once; `again` those that failed, too."""
        wanted = {point.key: point for point in points}.values()
        jobs = jobs_left(self.folder, self.folder.plan, wanted, retry_failed=again)
        record_all(self.folder, jobs, self.executor, self.on_record)

    def _report_trial(self, trial: SearchTrial) -> None:
        key = self._point(trial).key
        self.study.tell(trial, key, objectives_of(self.folder.records[key]))


def objectives_of(record: Mapping[str, Any]) -> list[float] | None:
    """Return the objectives of a point that is right, in their order; None where it is not, or one has no value."""
    found = list(record["objectives"].values())
    return found if record["status"] == "ok" and None not in found else None
