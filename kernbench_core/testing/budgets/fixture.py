"""The fixture: runs of one test, their limits and goldens; what is wrong is told when the test is over."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from kernbench_core.errors import KernbenchError, UsageError
from kernbench_core.runs.result import RunResult
from kernbench_core.testing.budgets.budgeted_run import BudgetedRun, budgeted
from kernbench_core.testing.budgets.golden_check import checked_golden, updated_golden
from kernbench_core.testing.budgets.golden_names import case_of, folder_of, golden_name
from kernbench_core.testing.budgets.limits import budgets_from
from kernbench_core.testing.budgets.measured import limited_figures, where_it_went
from kernbench_core.testing.budgets.records import CaseRecord, RunRecord
from kernbench_core.testing.budgets.user_frames import of_user_frames
from kernbench_core.wording import brief

__tracebackhide__ = True  # a failure shows the line of the test


@attrs.frozen
class GoldenPlace:
    """Where the goldens of a test lie, what its paths are shown relative to, and the command that writes them."""

    test_file: Path
    nodeid: str
    shown_from: Path
    command: str
    update: bool

    def file(self, name: str | None) -> Path:
        """Return the file of one of its goldens; UsageError for a name that is none."""
        return folder_of(self.test_file) / golden_name(case_of(self.nodeid), name)

    def shown(self, file: Path) -> str:
        """Return a path as sentences have it: relative to where pytest was called, with slashes."""
        return Path(os.path.relpath(file, self.shown_from)).as_posix()


@attrs.define
class _LookedAt:
    """A result that the test looked at: which figures are beyond their limits, where its time went, its goldens."""

    result: weakref.ref[RunResult]
    record: RunRecord
    beyond: list[str] = attrs.field(factory=list)
    went: list[str] = attrs.field(factory=list)
    goldens: list[str] = attrs.field(factory=list)

    def failures(self, number: int) -> Iterator[str]:
        """Yield what is wrong with it, each with its bench and topology, and its number among several."""
        what = f"{self.record.bench} on {self.record.topology}{f' (run {number})' if number > 1 else ''}"
        if self.beyond:
            count = len(self.record.budgets)
            which = "its budget" if count == 1 else f"{len(self.beyond)} of {count} budgets"
            yield "\n".join([f"{what} is beyond {which}:", *(f"  {each}" for each in self.beyond), *self.went])
        yield from (f"{what} {golden}" for golden in self.goldens)


class KernbenchFixture:
    """Runs benches, and holds results to limits and goldens, for one test, which fails at its end."""

    def __init__(self, place: GoldenPlace) -> None:
        self.case = CaseRecord(place.nodeid)
        self.files: list[Path] = []
        self._place = place
        self._looked_at: list[_LookedAt] = []

    def run(self, *args: Any, **options: Any) -> BudgetedRun:
        """Run a bench as `kb.run` does, which says what the arguments are; the result has `budget`, too."""
        from kernbench_core.runs.bench_run import run

        try:
            return budgeted(run(*args, **options), self.budget)
        except KernbenchError as error:
            raise of_user_frames(error) from None

    def budget(self, result: RunResult, limits: Mapping[str, object] | None = None, /, **more: object) -> None:
        """Hold any result to limits, as `result.budget` does with one that `run` returned."""
        if not isinstance(limits, Mapping | None):
            raise UsageError(f"a budget must name its figures, as time_ns=65_000 or a mapping, not {brief(limits)}.")
        looked_at = self._entry(result)
        figures = looked_at.record.figures
        budgets = budgets_from([*(limits or {}).items(), *more.items()], figures)
        looked_at.record.budgets += budgets
        measured = [(each, figures[each.figure]) for each in budgets]
        looked_at.beyond += [each.fault(figure) for each, figure in measured if not each.holds(figure)]
        if looked_at.beyond:
            looked_at.went = list(where_it_went(result))

    def golden(self, result: RunResult, name: str | None = None) -> None:
        """Compare all figures of a result with the golden of this test, or with one of several, by name.

        The test fails when it is over, and says what differs and why. With `--kernbench-update` the golden is written.
        """
        looked_at = self._entry(result)
        file = self._place.file(name)
        if file in self.files:
            which = "a golden without a name" if name is None else f"a golden of the name {name!r}"
            raise UsageError(f"a test must ask for {which} once; give each a name, as golden(result, 'second').")
        self.files.append(file)
        looked_at.record.name = looked_at.record.name or name or ""
        check = updated_golden if self._place.update else checked_golden
        found, failure = check(result, file, self._place.shown(file), case_of(self._place.nodeid), self._place.command)
        looked_at.record.goldens.append(found)
        looked_at.goldens += filter(None, [failure])

    def taken(self) -> str:
        """Return all that is wrong, as one failure, once; "" where nothing is."""
        text = "\n\n".join(each for number, one in enumerate(self._looked_at, 1) for each in one.failures(number))
        for one in self._looked_at:
            one.beyond, one.goldens = [], []
        return text

    def __repr__(self) -> str:
        return f"<kernbench of {self.case.test}>"

    def _entry(self, result: RunResult) -> _LookedAt:
        """Return what is noted of a result; UsageError for what is none, or was interrupted."""
        if not isinstance(result, RunResult):
            raise UsageError(f"a budget or golden must be of a result, as of kernbench.run, not {brief(result)}.")
        if result.interrupted:
            raise UsageError("a budget or golden must be of a whole run, and this one was interrupted.")
        for known in self._looked_at:
            if known.result() is result:
                return known
        record = RunRecord(result.bench, result.topology, limited_figures(result))
        self._looked_at.append(_LookedAt(weakref.ref(result), record))
        self.case.runs.append(record)
        return self._looked_at[-1]
