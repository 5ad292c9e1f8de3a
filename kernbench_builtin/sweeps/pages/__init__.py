"""A sweep as pages to look at: that of all of its points, and those of single ones, made when they are asked for.

In: a sweep that was read, and what its user calls its folder. Out: the page's plain data, which the report draws, and
command lines that a shell takes. The command line and the server of pages call it.
"""
