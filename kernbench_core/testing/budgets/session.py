"""One pytest process: what its tests' runs gave, failures when a test is over, reports when all are.

With xdist each process of tests tells what its tests did beside their reports, and the one that has no tests sums up.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from kernbench_core.errors import UsageError
from kernbench_core.testing.budgets import FIXTURE

if TYPE_CHECKING:
    from kernbench_core.testing.budgets.fixture import GoldenPlace, KernbenchFixture
    from kernbench_core.testing.budgets.outlets import Outlet

#: What a report carries its test's record as, and what a process of xdist gives the files of its tests as.
_CARRIED: Final = "kernbench_case"
_FILES: Final = "kernbench_files"


class BudgetSession:
    """Hooks that are registered where a test uses the fixture, or an option is given."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._of_tests = hasattr(config, "workerinput")
        self._collected: list[pytest.Item] = []
        self._fixtures: dict[str, KernbenchFixture] = {}
        self._cases: dict[str, dict[str, Any]] = {}
        self._files: list[dict[str, Any]] = []
        self._told: list[str] = []
        self._outlets = () if self._of_tests else _outlets(config)

    def collected(self, items: list[pytest.Item]) -> None:
        """Keep the tests that were found, before some are deselected."""
        self._collected = list(items)

    def fixture(self, request: pytest.FixtureRequest) -> Iterator[KernbenchFixture]:
        """Give a test its fixture."""
        from kernbench_core.testing.budgets.fixture import KernbenchFixture

        made = KernbenchFixture(self._place(request.node))
        self._fixtures[request.node.nodeid] = made
        yield made
        if wrong := made.taken():  # found while fixtures went down
            pytest.fail(wrong, pytrace=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fail a test that has ended well with all that its fixture found wrong."""
        result = yield
        made = self._fixtures.get(item.nodeid)
        if made is not None and (wrong := made.taken()):
            pytest.fail(wrong, pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add what was found wrong to the report of a test that raised by itself, and the record to its last one."""
        report = yield
        made = self._fixtures.get(item.nodeid)
        if made is None:
            return report
        if call.when == "call":
            made.case.outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
            if wrong := made.taken():
                report.sections.append(("kernbench", wrong))
        elif call.when == "teardown":
            asked = [str(file) for file in made.files]
            setattr(report, _CARRIED, {"case": made.case.to_json(), "file": str(item.path), "asked": asked})
            del self._fixtures[item.nodeid]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take a test's record, from this process or another; of a test that is run again the last one counts."""
        carried = getattr(report, _CARRIED, None)
        if carried is not None and not self._of_tests:
            self._cases[report.nodeid] = carried

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a process of xdist knows of its files; all of them know the same."""
        self._files = getattr(node, "workeroutput", {}).get(_FILES) or self._files

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand on, or write the reports; a report that cannot be written fails the session."""
        from kernbench_core.testing.budgets.stale_goldens import collected_files

        if self._collected:
            whole = not self._config.getoption("lf", False)
            ran = getattr(session, "items", ())
            self._files = collected_files(self._collected, ran, self._config.args, FIXTURE, whole)
        if self._of_tests:
            self._config.workeroutput[_FILES] = self._files  # type: ignore[attr-defined]  # xdist gives it
            return
        for outlet in () if self._config.getoption("collectonly", False) else self._outlets:
            if outlet.file is None:
                continue
            try:
                outlet.write(self._text(outlet))
            except UsageError as error:
                self._told.append(str(error))
                session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the table that is to be printed, goldens that were written, and those that nobody asks for."""
        from kernbench_core.testing.budgets.summary import summary_lines

        cases = self._sorted()
        shown = {str(file): self._shown(file) for file in self._stale()}
        lines = [*self._told, *summary_lines(cases, list(shown.values()), self._config.getoption("kernbench_update"))]
        tables = [self._text(outlet) for outlet in self._outlets if outlet.file is None]
        if lines or tables:
            terminalreporter.section("kernbench")
            for text in (*tables, *lines):
                terminalreporter.write_line(text)

    def _place(self, node: pytest.Item) -> GoldenPlace:
        from kernbench_core.testing.budgets.fixture import GoldenPlace

        at = self._config.invocation_params.dir
        selected = "::".join([Path(os.path.relpath(node.path, at)).as_posix(), *node.nodeid.split("::", 1)[1:]])
        command = f"pytest {shlex.quote(selected)} --kernbench-update"
        return GoldenPlace(node.path, node.nodeid, at, command, self._config.getoption("kernbench_update"))

    def _shown(self, file: Path) -> str:
        return Path(os.path.relpath(file, self._config.invocation_params.dir)).as_posix()

    def _sorted(self) -> list[Any]:
        """Return the records of all tests, by node id."""
        from kernbench_core.testing.budgets.records import CaseRecord

        return [CaseRecord.from_json(self._cases[nodeid]["case"]) for nodeid in sorted(self._cases)]

    def _stale(self) -> list[Path]:
        from kernbench_core.testing.budgets.golden_names import case_of
        from kernbench_core.testing.budgets.stale_goldens import stale_goldens

        ended: dict[Path, list[str]] = {}
        for nodeid, carried in self._cases.items():
            if carried["case"]["outcome"] == "passed":
                ended.setdefault(Path(carried["file"]), []).append(case_of(nodeid))
        asked = {Path(file) for carried in self._cases.values() for file in carried["asked"]}
        return stale_goldens(self._files, ended, asked)

    def _text(self, outlet: Outlet) -> str:
        from kernbench_core.testing.budgets.reports import REPORTS

        return REPORTS[outlet.form](self._sorted())


def _outlets(config: pytest.Config) -> tuple[Outlet, ...]:
    """Return where reports go; pytest's own UsageError for options that are wrong."""
    report, figures = config.getoption("kernbench_report"), config.getoption("kernbench_json")
    if report is None and figures is None:
        return ()
    from kernbench_core.testing.budgets.outlets import outlets

    try:
        return outlets(report or (), figures or ())
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
