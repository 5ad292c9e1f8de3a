"""Budgets of simulated runs in a test suite: a fixture, goldens beside the tests, reports for people and dashboards.

In: results, limits, files of goldens. Out: failures that say what moved and why, tables, JSON. pytest calls it, by the
entry point of `plugin`, which everybody's pytest loads where kernbench is installed: nothing else is imported by it.
"""

from typing import Final

#: The name of the fixture.
FIXTURE: Final = "kernbench"
