"""What the entry point of an installed plug-in says: whose it is, and its module."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.metadata import EntryPoint
from types import ModuleType

from kernbench_core.errors import UsageError


def distribution_of(point: EntryPoint) -> tuple[str, str]:
    """Return the name and the version of an entry point's distribution, as far as its files still say them.

    An install that was cut short may leave entry points behind without the metadata.
    """
    dist = point.dist
    if dist is None:
        return "an unnamed distribution", ""
    return _said(lambda: dist.name) or "an unnamed distribution", _said(lambda: dist.version)


def _said(read: Callable[[], str | None]) -> str:
    """Return what metadata say, nothing where they do not: each Python raises, or warns of, another thing then."""
    try:
        return read() or ""
    except (KeyError, TypeError, AttributeError, OSError, DeprecationWarning):
        return ""


def import_named(module: str) -> ModuleType:
    """Import the module that an entry point names, whatever that raises; UsageError for something in a module."""
    name, inside, _ = module.partition(":")
    if inside:
        raise UsageError(f"its entry point must name a module, not {module!r}; write {name.strip()!r}")
    return importlib.import_module(module)
