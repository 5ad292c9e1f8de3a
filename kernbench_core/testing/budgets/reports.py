"""Reports of all tests' runs: a table for people, and JSON for the dashboards of continuous integration.

Sources of the forms: github.com/benchmark-action/github-action-benchmark (`customSmallerIsBetter`: a list of objects
with name, unit, value, and extra), github.com/ionelmc/pytest-benchmark (the object of `--benchmark-json`).
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kernbench_core.package import __version__
from kernbench_core.testing.budgets.limits import Budget, change, exact, unit_of
from kernbench_core.testing.budgets.outlets import BENCHMARK, MARKDOWN, SMALLER
from kernbench_core.testing.budgets.records import DIFFERS, NEW, REWRITTEN, SAME, CaseRecord, RunRecord

TIME: Final = "time_ns"
_HEAD: Final = ("test", "figure", "measured", "budget", "golden", "change")


class _Row(NamedTuple):
    """One figure of one run of a test, and its limits."""

    case: CaseRecord
    label: str
    run: RunRecord
    figure: str
    budgets: Sequence[Budget]

    @property
    def measured(self) -> float | None:
        return self.run.figures.get(self.figure)

    @property
    def name(self) -> str:
        """The test, and which of its runs, where it has several."""
        return f"{self.case.test}{self.label}"


def markdown(cases: Sequence[CaseRecord]) -> str:
    """Return a table of the figures that have budgets, and of the time of each run, beside those of goldens."""
    rows = [[_code(row.name), _code(row.figure), *_cells(row)] for row in _rows(cases)]
    if not rows:
        return "No test looked at a simulated run."
    beyond = sum(not _holds(row) for row in _rows(cases))
    differ = sum(any(golden.state not in (SAME, NEW, REWRITTEN) for golden in run.goldens) for run in _runs(cases))
    runs = sum(1 for _ in _runs(cases))
    said = f"Figures: {len(rows)}, beyond their budgets: {beyond}. "
    lines = ["### kernbench", "", f"{said}Runs: {runs}, otherwise than their goldens: {differ}.", ""]
    return "\n".join([*lines, *map(_line, (_HEAD, ("---", "---", "---:", "---", "---:", "---"), *rows))])


def smaller_is_better(cases: Sequence[CaseRecord]) -> str:
    """Return the time of each run, and each figure that has an upper limit, as github-action-benchmark reads them."""
    found = []
    for row in _rows(cases):
        limited = any(each.high is not None for each in row.budgets)
        if row.measured is None or not math.isfinite(row.measured) or not (limited or row.figure == TIME):
            continue
        said = [f"{row.run.bench} on {row.run.topology}", *(f"budget: {each.said}" for each in row.budgets)]
        if (before := _before(row)) is not None:
            said.append(f"golden: {exact(before)}{unit_of(row.figure)}")
        entry = {"name": f"{row.name} {row.figure}", "unit": unit_of(row.figure).strip() or "1", "value": row.measured}
        found.append({**entry, "extra": "\n".join(said)})
    return json.dumps(found, indent=2, allow_nan=False)


def benchmark_like(cases: Sequence[CaseRecord]) -> str:
    """Return the simulated time of each run, in s, as pytest-benchmark would have measured it in one round."""
    found = [_benchmark(row) for row in _rows(cases) if row.figure == TIME and row.measured]
    head = {"machine_info": {}, "commit_info": {}, "benchmarks": found, "datetime": "", "version": __version__}
    return json.dumps(head, indent=2, allow_nan=False)


REPORTS: Final[Mapping[str, Callable[[Sequence[CaseRecord]], str]]] = {
    MARKDOWN: markdown,
    SMALLER: smaller_is_better,
    BENCHMARK: benchmark_like,
}


def _benchmark(row: _Row) -> dict[str, Any]:
    seconds = float(row.measured or 0) * 1e-9
    times = dict.fromkeys(("min", "max", "mean", "median", "q1", "q3", "ld15iqr", "hd15iqr", "total"), seconds)
    stats = {**times, "stddev": 0.0, "iqr": 0.0, "rounds": 1, "iterations": 1, "ops": 1 / seconds, "data": [seconds]}
    stats |= {"outliers": "0;0", "iqr_outliers": 0, "stddev_outliers": 0}
    held = {name: value for name, value in row.run.figures.items() if value is None or math.isfinite(value)}
    case = row.name.rpartition("::")[2]
    return {
        "group": None, "name": case, "fullname": row.name, "params": None,
        "param": case.partition("[")[2].removesuffix("]") or None,
        "extra_info": {"bench": row.run.bench, "topology": row.run.topology, "figures": held}, "options": {},
        "stats": stats,
    }  # fmt: skip


def _runs(cases: Sequence[CaseRecord]) -> Iterator[RunRecord]:
    yield from (run for case in cases for run in case.runs)


def _rows(cases: Sequence[CaseRecord]) -> Iterator[_Row]:
    """Yield the time of each run, and each figure that is limited."""
    for case in cases:
        for number, run in enumerate(case.runs, 1):
            label = f" ({run.name or f'run {number}'})" if len(case.runs) > 1 else ""
            for figure in dict.fromkeys((TIME, *(each.figure for each in run.budgets))):
                yield _Row(case, label, run, figure, [each for each in run.budgets if each.figure == figure])


def _holds(row: _Row) -> bool:
    return all(each.holds(row.measured) for each in row.budgets)


def _before(row: _Row) -> float | None:
    return next((each.before.get(row.figure) for each in row.run.goldens if each.before is not None), None)


def _cells(row: _Row) -> Iterator[str]:
    """Yield what was measured, its limits, the golden's figure, and by how much it is another one."""
    unit, before = unit_of(row.figure), _before(row)
    yield "none" if row.measured is None else f"{exact(row.measured)}{unit}"
    yield "; ".join(f"{each.said}{'' if each.holds(row.measured) else ' **beyond**'}" for each in row.budgets)
    yield f"{exact(before)}{unit}" if before is not None else ", ".join(each.state for each in row.run.goldens)
    moved = "" if before is None or row.measured is None else change(before, row.measured, unit)
    others = any(each.state == DIFFERS for each in row.run.goldens)
    yield "same; others differ" if moved == "same" and others else moved


def _code(text: str) -> str:
    """Return a name as code inside a cell, whatever is in it."""
    plain = " ".join(text.split())
    if "`" in plain or "\\" in plain:
        return f"<code>{html.escape(plain)}</code>".replace("|", "&#124;")
    return f"`{plain}`".replace("|", "\\|")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
