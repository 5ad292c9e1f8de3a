"""From what is asked for to a plan that can be carried out: the command line, a YAML file, and all that is wrong.

In: texts, a file, registered names. Out: a `SweepPlan`, or every fault of it. The sweep and its command call it.
"""
