"""What the entry points of installed plug-ins say: whose they are, and their modules."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any, Final

from kernbench_core.errors import UsageError
from kernbench_core.package import GROUP

#: How the folders of what is installed end, or are called in an egg.
_INFOS: Final = ("dist-info", "egg-info")


def installed_plugins() -> tuple[tuple[str, str, str, str], ...]:
    """Return of each installed plug-in its distribution, its name, its module and its version.

    Reading them takes as long as a small run, so it is done again only where something was installed, changed or
    removed since.
    """
    return _read(importlib.metadata.entry_points, tuple([each for place in sys.path for each in _state(place)]))


@lru_cache(maxsize=4)
def _read(entry_points: Callable[..., Any], _: tuple[Any, ...]) -> tuple[tuple[str, str, str, str], ...]:
    found = []
    for point in entry_points(group=GROUP):
        name, version = distribution_of(point)
        found.append((name, point.name, point.value, version))
    return tuple(found)


def _state(place: str) -> Iterator[tuple[str, int, int]]:
    """Yield what is another thing when what is installed at a place of the path is: names, times and sizes."""
    try:
        with os.scandir(place or ".") as inside:
            infos = [each.path for each in inside if each.name.lower().endswith(_INFOS)]
    except OSError:  # an archive, or nothing
        infos = []
        yield _seen(place)
    for info in infos:
        yield _seen(os.path.join(info, "entry_points.txt"))  # noqa: PTH118 - a path object takes longer


def _seen(file: str) -> tuple[str, int, int]:
    try:
        found = os.stat(file)  # noqa: PTH116
    except OSError:
        return file, 0, 0
    return file, found.st_mtime_ns, found.st_size


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
