"""What pytest loads of kernbench by itself: options, the fixture, its failures and the report at the end.

PYTEST_DONT_REWRITE: there is no assertion in it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kernbench_builtin.checks.budgets.fixture import KernbenchFixture

_FIXTURE = pytest.StashKey["KernbenchFixture"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("kernbench", "simulated runs (kernbench)")
    group.addoption("--kernbench-update", action="store_true", help="Update the goldens of the tests that run.")
    group.addoption("--kernbench-report", action="store_true", help="Print a table of budgets and goldens at the end.")
    group.addoption("--kernbench-json", metavar="FILE", help="Write figures for dashboards: customSmallerIsBetter.")


@pytest.fixture
def kernbench(request: pytest.FixtureRequest) -> Iterator[KernbenchFixture]:
    """Run benches, and hold what they give to budgets and goldens.

    def test_softmax(kernbench):
        result = kernbench.run("softmax", "tiny")
        result.budget(time_ns=80_000, hazards=0)
        kernbench.golden(result)
    """
    from kernbench_builtin.checks.budgets.fixture import KernbenchFixture

    request.node.stash[_FIXTURE] = KernbenchFixture(request.node)
    yield request.node.stash[_FIXTURE]
    if wrong := _wrong(request.node):  # found while other fixtures went down
        pytest.fail(wrong, pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that ended well with all that its fixture found wrong; else say that beside the test's own error."""
    try:
        result = yield
    except BaseException:
        if wrong := _wrong(item):
            item.add_report_section("call", "kernbench", wrong)
        raise
    if wrong := _wrong(item):
        pytest.fail(wrong, pytrace=False)
    return result


def _wrong(item: pytest.Item) -> str:
    made = item.stash.get(_FIXTURE, None)
    return "" if made is None else made.taken()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the table that is asked for and the goldens that were written, and write the JSON.

    With xdist the process that has no tests does so for all: their reports come to it.
    """
    asked = [config.getoption(f"kernbench_{name}") for name in ("update", "report", "json")]
    if not any(asked) or config.getoption("collectonly", False) or hasattr(config, "workerinput"):
        return
    from kernbench_builtin.checks.budgets.report import BudgetReport
    from kernbench_core.errors import UsageError

    update, table, json_file = asked
    report = BudgetReport.of(report for reports in terminalreporter.stats.values() for report in reports)
    lines = [*(report.table() if table else ()), *(report.golden_lines() if update else ())]
    if lines:
        terminalreporter.section("kernbench")
        for line in lines:
            terminalreporter.write_line(line)
    if json_file:
        try:
            report.write_json(config.invocation_params.dir / json_file)
        except UsageError as error:
            pytest.exit(str(error), returncode=pytest.ExitCode.TESTS_FAILED)
