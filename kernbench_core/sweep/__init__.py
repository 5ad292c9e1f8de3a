"""Many runs of one bench over a space of machines and parameters: planned, run in parallel, kept, and ranked.

In: axes, constraints and objectives. Out: a folder with a record of each point, from which a sweep goes on, its table
and its page. The command line and notebooks call it.
"""
