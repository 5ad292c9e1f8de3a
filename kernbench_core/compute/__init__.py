"""Phase 2: compute what the op log says, outside the simulation, and check the results.

In: an op log and a memory store, also saved ones. Out: arrays, and the verdict on what was expected. Imports nothing of
phase 1; runs and saved logs call it.
"""
