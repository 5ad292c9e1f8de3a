"""The arguments that a kernel is called with: how they are passed, and what stands for others inside them."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import TypeVar

_T = TypeVar("_T")


def by_keyword(signature: inspect.Signature) -> inspect.Signature:
    """Return a signature that passes by keyword what may be: what wraps a kernel may have another order, or none.

    With a `*rest`, what stands before it is passed by position.
    """
    parameters = signature.parameters.values()
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return signature
    named = {each: each.KEYWORD_ONLY for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD}
    return signature.replace(parameters=[each.replace(kind=named.get(each, each.kind)) for each in parameters])


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
        if isinstance(value, list):
            listed = copy.copy(value)
            listed[:] = items
            return listed
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
