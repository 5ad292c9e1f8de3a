"""Answers kept in the user's cache folder, and what they depend on: whole files under a key, bounded, without pickle.

In: a key, an answer's files and the places that it depends on. Out: the same files, or nothing. Runs and the
choice of collective algorithms call it.
"""
