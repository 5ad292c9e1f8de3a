"""What a kernel gives where True or False is asked for: other things are refused, as a text is true that says "no"."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, Final, TypeVar, cast

import numpy as np

from kernbench_core.callsite import call_site, describe_site
from kernbench_core.errors import KernelError
from kernbench_core.wording import brief

_ASKED: Final = {"bool": (), "bool | None": (None,)}
"""Annotations of such parameters, and what else they take."""

_BY_NAME: Final = sys.maxsize
_Call = TypeVar("_Call", bound=Callable[..., Any])

#: Calls that look themselves, as they are made for each command.
_OWN: Final = frozenset(("issue", "load", "recv", "send"))


def check_flags(language: type, names: Iterable[str]) -> None:
    """Have the calls of the language by these names refuse what is no bool, by how their parameters are annotated."""
    for name in names:
        call = inspect.getattr_static(language, name, None)
        if hasattr(call, "__code__") and name not in _OWN:  # a function, of Python or compiled
            flags = _flags_of(call)
            if flags:
                setattr(language, name, _checked(name, call, flags))


def with_flags(call: _Call) -> _Call:
    """Have a call that a plug-in adds to the language, whose first parameter is `tl`, refuse what is no bool."""
    flags = _flags_of(call)
    return cast(_Call, _checked(call.__name__, call, flags)) if flags else call


def _flags_of(call: Callable[..., Any]) -> dict[str, tuple[int, tuple[Any, ...]]]:
    """Return the place of each such parameter behind `self`, `_BY_NAME` where it has none, and what else it takes."""
    parameters = list(inspect.signature(call).parameters.values())[1:]
    return {
        one.name: (place if one.kind is one.POSITIONAL_OR_KEYWORD else _BY_NAME, _ASKED[one.annotation])
        for place, one in enumerate(parameters)
        if one.annotation in _ASKED
    }


def _checked(name: str, call: Callable[..., Any], flags: dict[str, tuple[int, tuple[Any, ...]]]) -> Callable[..., Any]:
    first = min(place for place, _ in flags.values())
    named, placed = tuple(flags), tuple((place, flag) for flag, (place, _) in flags.items())

    @wraps(call)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs:  # nearly each call gives True or False: little is asked of it
            for flag in named:
                value = kwargs.get(flag, True)
                if value is not True and value is not False:
                    refuse_flag(name, flag, value, flags[flag][1])
        if len(args) > first:
            for place, flag in placed:
                if place < len(args) and args[place] is not True and args[place] is not False:
                    refuse_flag(name, flag, args[place], flags[flag][1])
        return call(self, *args, **kwargs)

    return checked


def refuse_flag(name: str, flag: str, value: object, others: tuple[Any, ...] = ()) -> None:
    """Raise KernelError with the user's line for what is neither True nor False."""
    if isinstance(value, bool | np.bool_) or _is_typed_bool(value) or any(value is other for other in others):
        return
    raise KernelError(
        f"tl.{name} at {describe_site(call_site())} must be given True or False as {flag}, not {brief(value)}; pass "
        f"{flag}=True or {flag}=False."
    )


def _is_typed_bool(value: object) -> bool:
    return isinstance(value, int) and getattr(value, "dtype", None) == "bool"
