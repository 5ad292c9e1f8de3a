"""Formats that an op log can be written in, one file each.

In: an op log. Out: a file. `kernbench run --trace` calls them.
"""
