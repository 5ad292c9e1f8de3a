"""Answers kept by content in the user's cache folder: whole files under a key, bounded, without pickle.

In: a key of all that an answer depends on, and the answer's files. Out: the same files, or nothing. Runs, sweeps and
the choice of collective algorithms call it.
"""
