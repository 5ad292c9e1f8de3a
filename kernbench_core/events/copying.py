"""Copies of what is scheduled, which `copy.copy` cannot make of objects whose attributes lie in C."""

from __future__ import annotations

from typing import TypeVar

from kernbench_core.events.declared import declared_by

_Thing = TypeVar("_Thing")


def copied(thing: _Thing) -> _Thing:
    """Return another thing with the same attributes, of those that are set."""
    made = type(thing).__new__(type(thing))
    slots = [name for cls in type(thing).__mro__ for name in declared_by(cls)]
    for name in (*slots, *getattr(thing, "__dict__", ())):
        if hasattr(thing, name):
            setattr(made, name, getattr(thing, name))
    return made
