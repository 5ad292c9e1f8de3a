"""Functions whose call does nothing but make a generator or a coroutine, which nobody carries out."""

from __future__ import annotations

import inspect
from typing import Final

#: What a function must be, in a sentence.
PLAIN: Final = "must be a plain function, with neither yield nor async: it would never run"


def never_runs(function: object) -> bool:
    """Whether a function has `async` or `yield` in it, so that a call alone carries out none of its lines."""
    plain = inspect.unwrap(function) if callable(function) else function
    kinds = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return any(kind(plain) for kind in kinds)


def is_async(function: object) -> bool:
    """Whether a function has `async` before it."""
    plain = inspect.unwrap(function) if callable(function) else function
    return inspect.iscoroutinefunction(plain) or inspect.isasyncgenfunction(plain)
