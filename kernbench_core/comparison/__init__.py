"""What moved between two runs: the figures of each, laid side by side and ranked.

In: two results, saved or just made. Out: the differences by phase, kind of component, link, op, kernel line, path,
configuration and source. The command line, the tests of budgets and the report call it.
"""
