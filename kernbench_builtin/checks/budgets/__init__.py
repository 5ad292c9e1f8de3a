"""Budgets of simulated runs in a test suite: a fixture, goldens beside the tests, one report.

In: results, limits, files of goldens. Out: failures that say what moved, a table, JSON for dashboards. pytest calls it,
by the entry point of `plugin`, which everybody's pytest loads where kernbench is installed: nothing else is imported
by it.
"""
