"""Composite commands, tile by tile: the plan, the token that routes itself, and the room in the register file.

In: a composite command. Out: tiles on their way through the units. The scheduler and the units call it.
"""
