"""Things inside the arguments of a kernel that stand for others."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TypeVar

_T = TypeVar("_T")


def replace_nested(value: object, kind: type[_T], make: Callable[[_T], object]) -> object:
    """Return `value` with `make(thing)` for each `kind` in it, at any depth of tuples, lists and dicts.

    A container that holds one is copied, its type kept; everything else is returned as it is.
    """
    if isinstance(value, kind):
        return make(value)
    if isinstance(value, tuple | list):
        items = [replace_nested(item, kind, make) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        rebuilt: Callable[..., object] = type(value)
        return rebuilt(*items) if hasattr(value, "_fields") else rebuilt(items)
    if isinstance(value, dict):
        found = {key: replace_nested(item, kind, make) for key, item in value.items()}
        if all(found[key] is value[key] for key in found):
            return value
        copied = copy.copy(value)
        copied.update(found)
        return copied
    return value


class PerPe:
    """Stand for an argument of a launch that differs from PE to PE; a program gets the value of its PE (its index)."""

    __slots__ = ("values",)

    def __init__(self, values: Mapping[int, object]) -> None:
        self.values = values

    def of(self, pe: int) -> object:
        """Give the value for a program of this PE."""
        return self.values[pe]
