"""Apply the rule to what pytest collects, say what was left out, and note what ran: tests/conftest.py registers it.

`KB_LEDGER` names the file of the ledger, `KB_LANDED` the commit that landed last. Others name files that are added to:
`KB_TIMES` by the CPU seconds of each test, `KB_FAILED` by what failed, `KB_TURNS` by what of it had its turn.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.chromium import live_cpu_seconds
from tests.selection.changed import TestMap, base, changed_files, commit
from tests.selection.records import NEWS, Ledger, Times
from tests.selection.rule import FAR, Choice, Known, Rule, choose


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of the children that it has waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


class Selection:
    """The plug-in of one pytest session."""

    def __init__(self) -> None:
        self._times = Times.read()
        self._ledger = Ledger(Path(os.environ["KB_LEDGER"])) if os.environ.get("KB_LEDGER") else None
        self._choice = Choice([], [], [], frozenset())
        self._rule = Rule.of_environment()
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what the rule leaves out; tests that are named one by one all run."""
        if not self._rule.has_limits or any("::" in argument for argument in config.args):
            return
        last_passed = self._ledger.last_passed() if self._ledger else {}
        known = Known(self._times, commit(), last_passed, _distance())
        self._choice = choose(items, self._rule, known)
        config.hook.pytest_deselected(items=[*self._choice.cases, *self._choice.heavy])
        items[:] = self._choice.chosen
        draw_fewer(items)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Measure the CPU seconds of a test with its fixtures."""
        in_browser = item.get_closest_marker("browser") is not None  # which lives on, and is asked of by itself
        before = cpu_seconds() + (live_cpu_seconds() if in_browser else 0.0)
        done = yield
        self._seconds[item.nodeid] = cpu_seconds() + (live_cpu_seconds() if in_browser else 0.0) - before
        return done

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember failures."""
        if report.failed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write down what ran."""
        ran = [nodeid for nodeid in self._seconds if self._times.is_heavy(nodeid)]  # of others none has a turn
        if self._ledger is not None:
            failed = [nodeid for nodeid in ran if nodeid in self._failed]
            self._ledger.add([nodeid for nodeid in ran if nodeid not in self._failed], failed)
        _append("KB_TIMES", [f"{seconds:.4f}\t{nodeid}" for nodeid, seconds in self._seconds.items()])
        _append("KB_FAILED", sorted(self._failed))
        _append("KB_TURNS", sorted(self._failed & self._choice.rotated))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what was left out and how to run it, and which new tests are heavy."""
        choice = self._choice
        if choice.cases or choice.heavy:
            functions = len({test.nodeid.partition("[")[0] for test in choice.cases})
            seconds = sum(self._times.of(test.nodeid) for test in choice.heavy)
            terminalreporter.write_line(
                f"left out: {len(choice.cases):,} cases of {functions:,} test functions, beyond {self._rule.cases} "
                f"each, and {len(choice.heavy):,} heavy tests ({seconds:.0f} CPU s), whose turn it is another time; "
                "`make test-all` runs all, `python -m pytest PATH` all of a file or folder."
            )
        changed = set(changed_files(base(os.environ.get("KB_LANDED")))) if "KB_TIMES" not in os.environ else set()
        for nodeid, seconds in self._seconds.items():
            if nodeid.partition("::")[0] in changed and self._times.is_news(nodeid, seconds):
                terminalreporter.write_line(
                    f"new, and over {NEWS} CPU s: {nodeid} ({seconds:.1f}); make it lighter, or record it with "
                    "`make times` and say why in the commit."
                )


def draw_fewer(items: Iterable[pytest.Item]) -> None:
    """Have tests draw a sixth of their examples; hypothesis has no setting for a part of what each test asks for."""
    functions = {getattr(item.obj, "__func__", item.obj) for item in items if isinstance(item, pytest.Function)}
    for function in functions:
        own = getattr(function, "_hypothesis_internal_use_settings", None)
        if own is not None:
            fewer = hypothesis.settings(own, max_examples=max(1, own.max_examples // 6))
            function._hypothesis_internal_use_settings = fewer


def _distance() -> Callable[[str], float]:
    """Return how near the change is to a test: its case has the name of a changed file, or the map has its file."""
    changed = changed_files(base(os.environ.get("KB_LANDED")))
    touched, stems = TestMap().touched(changed), {Path(file).stem for file in changed}
    nearest = {file: place for place, file in enumerate(touched, 1)}

    def distance(nodeid: str) -> float:
        file, _, name = nodeid.partition("::")
        case = name.partition("[")[2]
        if not stems.isdisjoint(re.findall(r"\w+", case)):
            return 0
        return nearest.get(file, FAR)

    return distance


def _append(variable: str, lines: list[str]) -> None:
    """Add lines to the file that a variable names, at once: several sessions may do so."""
    path = os.environ.get(variable)
    if path and lines:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))
