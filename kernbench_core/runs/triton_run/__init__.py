"""Runs of files written in Triton: a machine that is held open while the caller's own code launches kernels on it.

In go launches of jit functions (`frontend`), out come figures and the result of a run. Who calls: `kb.triton`, and
`kernbench triton`.
"""
