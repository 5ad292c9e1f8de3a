"""The op log: what each logged message did, when, and on which values; the only thing phase 1 hands to phase 2.

In: descriptions of ops with their times. Out: records in order, and one hash of all of them. The engine fills it,
compute and explain read it.
"""
