"""Runs and commands that are not made twice: what an answer depends on as a key, and the answer in the user's cache.

In: a request, and what carries it out. Out: its result, made now or earlier. `kb.run(cached=True)` calls it.
"""
