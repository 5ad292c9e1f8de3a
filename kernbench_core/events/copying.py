"""Copies of what is scheduled, which `copy.copy` cannot make of objects whose attributes lie in C."""

from __future__ import annotations

from typing import TypeVar

_Thing = TypeVar("_Thing")


def copied(thing: _Thing) -> _Thing:
    """Return another thing with the same attributes, of those that are set."""
    made = type(thing).__new__(type(thing))
    slots = [name for cls in type(thing).__mro__ for name in slots_of(cls)]
    for name in (*slots, *getattr(thing, "__dict__", ())):
        if hasattr(thing, name):
            setattr(made, name, getattr(thing, name))
    return made


def slots_of(cls: type) -> tuple[str, ...]:
    """Return the names that a class says its objects have a slot for."""
    names = cls.__dict__.get("__slots__", ())
    found = (names,) if isinstance(names, str) else tuple(names)
    return tuple(name for name in found if name not in ("__dict__", "__weakref__"))
