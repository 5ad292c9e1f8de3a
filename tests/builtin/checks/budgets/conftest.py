"""A pytest inside the tests, and runs that several tests look at."""

from __future__ import annotations

import pytest

from kernbench_core.runs.result import RunResult
from tests.builtin.checks.budgets.inner_pytest import Inner, ran


@pytest.fixture(scope="session")
def result() -> RunResult:
    """Give a run of a small kernel."""
    return ran()


@pytest.fixture
def inner(result: RunResult, pytester: pytest.Pytester) -> Inner:
    """Give a pytest in a folder of its own; what a run imports is there, as numpy cannot be imported twice."""
    return Inner(pytester)
