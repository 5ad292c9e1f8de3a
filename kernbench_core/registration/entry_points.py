"""What the entry point of an installed plug-in says: whose it is, and its module."""

from __future__ import annotations

import importlib
from importlib.metadata import EntryPoint
from types import ModuleType

from kernbench_core.errors import UsageError


def distribution_of(point: EntryPoint) -> tuple[str, str]:
    """Return the name and the version of an entry point's distribution, as far as its files still say them.

    An install that was cut short may leave entry points behind without the metadata.
    """
    try:
        said = (point.dist.name, point.dist.version) if point.dist is not None else (None, None)
    except (KeyError, TypeError, AttributeError, OSError):  # what is not there raises another one in each Python
        said = (None, None)
    return said[0] or "an unnamed distribution", said[1] or ""


def import_named(module: str) -> ModuleType:
    """Import the module that an entry point names, whatever that raises; UsageError for something in a module."""
    name, inside, _ = module.partition(":")
    if inside:
        raise UsageError(f"its entry point must name a module, not {module!r}; write {name.strip()!r}")
    return importlib.import_module(module)
