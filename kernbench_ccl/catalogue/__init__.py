"""The algorithms that are registered or lie in a file: by which names they are found, opened and checked.

In: what a user calls an algorithm. Out: checked views of modules. Plans, proofs and measurements call it.
"""
