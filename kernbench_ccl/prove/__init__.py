"""Prove an algorithm: run its kernel without time on symbolic payloads, for many numbers of ranks and every network.

In: an algorithm. Out: a proof, or the step and the line where a contribution was lost. `kernbench ccl check` and
measurements call it.
"""
