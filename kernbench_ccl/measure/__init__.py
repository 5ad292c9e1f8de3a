"""Time a collective on a machine of its own, check its data, and say what bound it.

In: a question and a machine. Out: rows of nccl-tests' table. `kernbench ccl COLLECTIVE` calls it.
"""
