"""The host's side of a run: a session on a graph, its host program and tensors, and what it reports when it ends.

In: a graph and a bench. Out: simulated time, an op log, the verdict of the sanity checks, a deadlock's report. Runs
call it, benches through `rt`.
"""
