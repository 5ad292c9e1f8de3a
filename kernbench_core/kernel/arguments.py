"""The arguments that a kernel is called with: their form, and things inside containers that stand for others."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

_T = TypeVar("_T")


def call_form(signature: inspect.Signature, arguments: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and the keyword arguments that pass `arguments`, as `launching.bind_arguments` names them.

    Whatever can be is passed by keyword; what stands before a filled `*rest` cannot.
    """
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    filled = any(p.kind is p.VAR_POSITIONAL and arguments.get(n) for n, p in signature.parameters.items())
    for name, parameter in signature.parameters.items():
        if name not in arguments:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            args.extend(arguments[name])
        elif parameter.kind is parameter.VAR_KEYWORD:
            kwargs.update(arguments[name])
        elif parameter.kind is parameter.POSITIONAL_ONLY or (
            filled and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ):
            args.append(arguments[name])
        else:
            kwargs[name] = arguments[name]
    return args, kwargs


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
            copied = copy.copy(value)
            copied[:] = items
            return copied
        rebuilt: Callable[..., object] = type(value)
        return rebuilt(*items) if hasattr(value, "_fields") else rebuilt(items)
    if isinstance(value, dict):
        found = {key: replace_nested(item, kind, make) for key, item in value.items()}
        if all(found[key] is value[key] for key in found):
            return value
        return _updated(value, found)
    return value


def _updated(value: dict[Any, Any], found: dict[Any, Any]) -> dict[Any, Any]:
    copied = copy.copy(value)
    copied.update(found)
    return copied


class PerPe:
    """Stand for an argument of a launch that differs from PE to PE; a program gets the value of its PE (its index)."""

    __slots__ = ("values",)

    def __init__(self, values: Mapping[int, object]) -> None:
        self.values = values

    def of(self, pe: int) -> object:
        """Give the value for a program of this PE."""
        return self.values[pe]
