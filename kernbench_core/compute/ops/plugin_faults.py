"""Whose fault it is that a plug-in's op will not do: its functions are called here, and what they give is judged."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any, Final

import numpy as np

from kernbench_core.callsite import describe_site, site_of_traceback
from kernbench_core.errors import KernelError, LimitError, PluginError, in_words
from kernbench_core.package import GROUP
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.values import dtypes

Blame = Callable[[str], PluginError]
"""Makes the error for an op that is not as it must be, of words that follow its name."""

_KINDS: Final = {"f": "floats", "V": "floats", "i": "integers", "u": "integers", "b": "bools"}
"""What numbers of a dtype are, by numpy's letter; V is that of floats which numpy does not have."""


def blame_of(name: str, target: str) -> Blame:
    """Return what makes the errors of op `name`, which is at `target`: they name the distribution that has it."""

    def fault(what: str) -> PluginError:
        owner = _distribution(target.partition(":")[0].partition(".")[0])
        return PluginError(f"op {name!r} of {' '.join(owner)} {what}; repair or reinstall {owner[0]}.")

    return fault


def _distribution(package: str) -> tuple[str, ...]:
    """Return the distribution, and its version, whose entry point is in a package."""
    for point in entry_points(group=GROUP):
        if point.dist is not None and point.value.partition(":")[0].partition(".")[0] == package:
            return point.dist.name, point.dist.version
    return (f"{package} (source tree)",)


def blaming(fault: Blame, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, with PluginError for what it raises; `what` says in words what it must be."""

    def call(*given: Any, **keywords: Any) -> Any:
        try:
            return function(*given, **keywords)
        except (*INTERRUPTS, MemoryError, KernelError, LimitError, PluginError):
            raise
        except BaseException as error:
            place = site_of_traceback(error.__traceback__)
            where = "" if place is None else f" at {describe_site(place)}"
            raise fault(f"must have {what}, but it raised {in_words(error)}{where}") from error

    return call


def refuse_kind(found: np.ndarray[Any, Any], dtype: str, fault: Blame) -> None:
    """Raise PluginError where numbers are of another kind than the dtype that was promised: rounding hides no such."""
    wanted = "floats" if dtypes.is_float(dtype) else _KINDS[dtypes.numpy_dtype(dtype).kind]
    known = dtypes.is_known(found.dtype) or found.dtype.kind in "fiub"
    if not known or _KINDS.get(found.dtype.kind) != wanted:
        raise fault(f"must give {wanted}, as its result is {dtype}, not {found.dtype.name}")


def keywords_of(function: object) -> tuple[frozenset[str], frozenset[str]]:
    """Return the keywords that a function takes, those which a call may give and those which it must."""
    try:
        parameters = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return frozenset(), frozenset()
    named = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    return frozenset(p.name for p in named), frozenset(p.name for p in named if p.default is p.empty)
