"""What tools/mutants.py has pytest do: note each failure at once, however the run ends, and run what it names alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest


def _note(report: pytest.CollectReport | pytest.TestReport) -> None:
    if report.failed:
        with Path(os.environ["MUTANTS_FAILED"]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(report.nodeid) + "\n")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note a file that cannot be collected."""
    _note(report)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a test that fails, or whose fixtures do."""
    _note(report)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run nothing but the tests of a list, where there is one."""
    if "MUTANTS_ONLY" in os.environ:
        only = set(json.loads(Path(os.environ["MUTANTS_ONLY"]).read_text(encoding="utf-8")))
        items[:] = [item for item in items if item.nodeid in only]
