"""Calibrate by measured collectives: nccl-tests' output is read, and its rows are simulated as `kernbench ccl` does.

In: logs of nccl-tests. Out: rows, what they say of links, and simulated times. `kernbench calibrate` calls it by the
registry of formats.
"""
