"""The fixture: runs of one test, their limits and goldens; what is wrong is told when the test is over."""

from __future__ import annotations

import os
import shlex
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from kernbench_builtin.checks.budgets.golden import case_of, checked_golden, golden_file, updated_golden
from kernbench_builtin.checks.budgets.limits import budgets_from, figures_of_result, spreads_of_result, unit_of
from kernbench_builtin.checks.budgets.report import PROPERTY
from kernbench_core.errors import KernbenchError, UsageError
from kernbench_core.runs.result import RunResult
from kernbench_core.spread import NOT_KNOWN
from kernbench_core.units import format_time
from kernbench_core.wording import brief

__tracebackhide__ = True  # a failure shows the line of the test
#: How many resources are told, and how many kernel lines.
_MOST = 3


@attrs.frozen(repr=False, eq=False)
class BudgetedRun(RunResult):
    """What the fixture's `run` returns: all that `kb.run` gives, and `budget`. A pickled one holds to nothing."""

    _hold: Callable[..., None] | None = attrs.field(default=None, kw_only=True)

    def budget(self, limits: Mapping[str, object] | None = None, /, **more: object) -> None:
        """Hold figures to limits: the most that each may be, or a pair of the least and the most, None where open.

        Times are in ns and sizes in bytes, or quantities as "65 us". The test fails when it is over, with every figure
        that is beyond its limit. Raise UsageError for a name that is no figure, and for what is no limit.

        `result.budget({"utilisation.pe_gemm": (0.5, None)}, time_ns="65 us", hbm_bytes=1 << 20, hazards=0)`
        """
        if self._hold is not None:
            self._hold(self, limits, **more)

    def __getstate__(self) -> dict[str, Any]:
        return {**RunResult.__getstate__(self), "_hold": None}


class KernbenchFixture:
    """Runs benches, and holds results to limits and goldens, for one test, which fails at its end."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._wrong: list[str] = []
        self._runs: list[tuple[weakref.ref[RunResult], str]] = []
        self._goldens: set[Path] = set()

    def run(self, *args: Any, **options: Any) -> BudgetedRun:
        """Run a bench as `kb.run` does, which says what the arguments are; the result has `budget`, too."""
        from kernbench_core.runs.bench_run import run

        try:
            result = run(*args, **options)
        except KernbenchError as error:  # its sentence has the user's line; what lies between says nothing to a user
            raise error.with_traceback(None) from None
        own = {str(each.alias): getattr(result, each.name) for each in attrs.fields(RunResult) if each.init}
        return BudgetedRun(**own, hold=self.budget)

    def budget(self, result: RunResult, limits: Mapping[str, object] | None = None, /, **more: object) -> None:
        """Hold any result to limits, as `result.budget` does with one that `run` returned."""
        which, figures = self._which(result), figures_of_result(result)
        budgets = budgets_from({**limits, **more} if isinstance(limits, Mapping) else limits or more, figures)
        faults, spreads, unknown = [], spreads_of_result(result), False
        for each in budgets:
            measured, spread = figures[each.figure], spreads.get(each.figure)
            if fault := each.fault(measured, spread):
                faults.append(f"{which}: {fault}")
                unknown = unknown or (spread is None and unit_of(each.figure) == "ns")
            limit = {"budget": each.said, "beyond": bool(fault), "smaller": each.high is not None}
            self._note(which, each.figure, measured, **limit)
        if faults:
            self._wrong.append("\n".join([*faults, *([NOT_KNOWN] if unknown else []), *_where_it_went(result)]))

    def golden(self, result: RunResult, name: str | None = None) -> None:
        """Compare all figures of a result with the golden of this test, or with one of several, by name.

        The test fails when it is over, and says what differs and why. With `--kernbench-update` the golden is written.
        """
        which, item = self._which(result), self._item
        case = case_of(item.nodeid)
        file = golden_file(item.path, case, name)
        if file in self._goldens:
            raise UsageError("a test must give each of its goldens a name of its own, as golden(result, 'second').")
        self._goldens.add(file)
        called_from = item.config.invocation_params.dir
        shown, tests = (Path(os.path.relpath(path, called_from)).as_posix() for path in (file, item.path))
        if item.config.getoption("kernbench_update"):
            found = updated_golden(result, file, shown, case)
        else:
            command = f"pytest {shlex.quote(f'{tests}::{case}')} --kernbench-update"
            found = checked_golden(result, file, shown, command)
        self._note(which, "time_ns", result.total_ns, golden=shown, state=found.state, moved=found.moved)
        if found.failure:
            self._wrong.append(f"{which} {found.failure}")

    def taken(self) -> str:
        """Return all that is wrong, as one failure, once; "" where nothing is."""
        wrong, self._wrong = self._wrong, []
        return "\n\n".join(wrong)

    def __repr__(self) -> str:
        return f"<kernbench of {self._item.nodeid}>"

    def _which(self, result: RunResult) -> str:
        """Say which run of the test a result is: "softmax on tiny (run 2)"; UsageError for what is no result."""
        if not isinstance(result, RunResult):
            raise UsageError(f"a budget or golden must be of a result, as of kernbench.run, not {brief(result)}.")
        for known, which in self._runs:
            if known() is result:
                return which
        number = f" (run {len(self._runs) + 1})" if self._runs else ""
        which = f"{result.bench} on {result.topology}{number}"
        self._runs.append((weakref.ref(result), which))
        self._note(which, "time_ns", result.total_ns)
        return which

    def _note(self, run: str, figure: str, value: float | None, **more: object) -> None:
        """Have the report of the test carry a figure, to wherever the session is summed up."""
        row = {"run": run, "figure": figure, "value": value, **more}
        self._item.user_properties.append((PROPERTY, row))


def _where_it_went(result: RunResult) -> Iterator[str]:
    """Say where the time of a run went: its phases, what was busiest, and the kernel lines whose ops took longest."""
    yield "Where the time went:"
    for name, ns in sorted(result.phases.items(), key=lambda each: -each[1]):
        if ns:
            yield f"  {name.replace('_', ' ')}: {format_time(ns)} ({100 * ns / result.total_ns:.1f} %)"
    for use in result.busiest[:_MOST]:
        yield f"  {use.name}: busy {format_time(use.busy_ns)}, in use {100 * use.utilisation:.1f} %"
    lines = zip(*(result.lines[name].tolist() for name in ("ns", "ops", "file", "line", "text")), strict=True)
    for ns, ops, file, line, text in sorted(lines, reverse=True)[:_MOST]:
        yield f"  {file}:{line}: {format_time(ns)} in {ops} ops: {text}"
