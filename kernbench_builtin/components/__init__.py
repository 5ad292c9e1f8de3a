"""The hardware models of the built-in machine: one file each, and what several of them share.

In: messages. Out: when they leave. The engine builds them, by the names that `plugin.py` gives them.
"""
