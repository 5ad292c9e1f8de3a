"""What pytest loads of kernbench by itself: options and the fixture; the rest is imported when a test uses them.

PYTEST_DONT_REWRITE: there is no assertion in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from kernbench_core.testing.budgets import FIXTURE

if TYPE_CHECKING:
    from kernbench_core.testing.budgets.fixture import KernbenchFixture
    from kernbench_core.testing.budgets.session import BudgetSession

#: What the session of budgets is registered as.
SESSION = "kernbench-budgets"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("kernbench", "simulated runs (kernbench)")
    group.addoption("--kernbench-update", action="store_true", help="Write the goldens of the tests that run anew.")
    group.addoption(
        "--kernbench-report",
        action="append",
        metavar="md[=FILE]",
        help="Print a table of budgets, or write it into a file; what $GITHUB_STEP_SUMMARY names is appended to. "
        "Repeatable.",
    )
    group.addoption(
        "--kernbench-json",
        action="append",
        metavar="[FORM=]FILE",
        help="Write figures for a dashboard: as customSmallerIsBetter of github-action-benchmark, or pytest-benchmark. "
        "Repeatable.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Begin at once where an option asks for it, or other processes run the tests and this one sums up."""
    asked = any(config.getoption(f"kernbench_{name}") for name in ("update", "report", "json"))
    if asked or config.getoption("dist", "no") != "no":
        _session(config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin where a test is going to use the fixture."""
    begun = config.pluginmanager.has_plugin(SESSION)
    if begun or any(FIXTURE in getattr(item, "fixturenames", ()) for item in items):
        _session(config).collected(items)


@pytest.fixture
def kernbench(request: pytest.FixtureRequest) -> Iterator[KernbenchFixture]:
    """Run benches, and hold what they give to budgets and goldens.

    def test_softmax(kernbench):
        result = kernbench.run("softmax", "tiny")
        result.budget(time_ns=80_000, hazards=0)
        kernbench.golden(result)
    """
    yield from _session(request.config).fixture(request)


def _session(config: pytest.Config) -> BudgetSession:
    """Return what is registered with this pytest; begin it where it has not begun."""
    found: BudgetSession | None = config.pluginmanager.get_plugin(SESSION)
    if found is None:
        from kernbench_core.testing.budgets.session import BudgetSession

        found = BudgetSession(config)
        config.pluginmanager.register(found, SESSION)
    return found
