"""Where plug-ins are: the entry points of what is installed, and files that are imported without being installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from kernbench_core.errors import UsageError
from kernbench_core.package import GROUP, OWN_PLUGINS

_STEM: Final = re.compile(r"[a-z][a-z0-9_]*")
_TEXT: Final = "__kernbench_text__"


def own_plugins(*names: str) -> tuple[str, ...]:
    """Return kernbench's own plug-ins as `load_plugins` takes those of a source tree: all, or `names` with their parts.

    >>> own_plugins("builtin.checks", "ccl")
    ('builtin.checks = kernbench_builtin.checks.plugin', 'ccl = kernbench_ccl.plugin')
    """
    called = [(text.partition(" ")[0], text) for text in OWN_PLUGINS]
    return tuple(text for name, text in called if not names or name in names or name.partition(".")[0] in names)


def installed_plugins() -> tuple[tuple[str, str, str, str], ...]:
    """Return of each installed plug-in its distribution, its name, its module and its version.

    Reading them takes as long as a small run, so it is done again only where the path of imports is another, or a
    folder of it holds other names.
    """
    return _read(importlib.metadata.entry_points, tuple(map(_state, sys.path)))


@lru_cache(maxsize=4)
def _read(entry_points: Callable[..., Any], _: tuple[Any, ...]) -> tuple[tuple[str, str, str, str], ...]:
    said: dict[Any, tuple[str, str]] = {}
    found = []
    for point in entry_points(group=GROUP):
        if point.dist not in said:  # its metadata are parsed each time that they are asked for
            said[point.dist] = _known_of(point)
        name, version = said[point.dist]
        found.append((name, point.name, point.value, version))
    return tuple(found)


def _known_of(point: Any) -> tuple[str, str]:
    """Return the name and version of an entry's distribution; where its install was cut short, the entry's name."""
    said: Any = {}
    with suppress(OSError):  # with importlib_metadata, there are none then
        said = point.dist.metadata or said
    return said.get("Name") or point.name, said.get("Version") or "?"


def _state(place: str) -> tuple[str, int, int]:
    """Return what is another thing when something was installed into a place of the path, or removed from it."""
    try:
        found = os.stat(place or ".")  # noqa: PTH116 - a path object takes longer
    except OSError:
        return place, 0, 0
    return place, found.st_ino, found.st_mtime_ns


def import_named(module: str) -> ModuleType:
    """Import the module that an entry point names, whatever that raises; UsageError for something in a module."""
    name, inside, _ = module.partition(":")
    if inside:
        raise UsageError(f"its entry point must name a module, not {module!r}; write {name.strip()!r}")
    return importlib.import_module(module)


def vendor_of(path: str) -> str:
    """Return the vendor of a plug-in file, which is its name without `.py`; UsageError for one that cannot be."""
    file = Path(path)
    if file.suffix != ".py" or not _STEM.fullmatch(file.stem):
        raise UsageError(
            f"plug-in file must be a .py file whose name, the vendor, is of lower-case letters, digits and '_', not "
            f"{path!r}; rename it."
        )
    if not file.is_file():
        raise UsageError(f"plug-in file must exist, and {path!r} does not.")
    return file.stem


def import_file(path: str) -> ModuleType:
    """Import a plug-in file, and return its module; its folder comes last on the path of imports.

    A file that is imported already is taken as it is unless its text has changed. UsageError where its name is that of
    another module, which it would hide.
    """
    file = Path(path).resolve()
    name, text = vendor_of(path), file.read_bytes()
    there = sys.modules.get(name)
    if there is not None and getattr(there, _TEXT, None) == text and getattr(there, "__file__", None) == str(file):
        return there
    other = importlib.util.find_spec(name) if there is None else there.__spec__
    if other is not None and (other.origin is None or Path(other.origin).resolve() != file):
        raise UsageError(f"plug-in file {path!r} must not have the name of another module, {name!r}; rename it.")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    setattr(module, _TEXT, text)
    sys.modules[name] = module
    try:
        code = compile(text, str(file), "exec", dont_inherit=True)  # annotations are what the file makes them
        exec(code, vars(module))  # not from a cache, whose times are whole seconds
    except BaseException:
        del sys.modules[name]
        raise
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    return module
