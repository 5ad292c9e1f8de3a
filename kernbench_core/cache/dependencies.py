"""What an answer depends on: the code of kernbench and of its plug-ins, loaded modules, files and variables."""

from __future__ import annotations

import glob
import hashlib
import importlib.util
import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kernbench_core.errors import KernbenchError
from kernbench_core.package import IMPORTED_NS

if TYPE_CHECKING:
    from kernbench_core.plugins import Plugins

#: The packages of the plug-ins that were asked for last, with their digests.
_LAST: list[tuple[Plugins, dict[str, str]]] = []


class NotCacheable(KernbenchError):
    """What was asked for is made anew each time: the sentence says why it cannot be kept."""


def code_digests(plugins: Plugins) -> Mapping[str, str]:
    """Return the SHA-256 of each package, or file, that kernbench and its plug-ins are in, of all that lies there.

    They are read once for one set of plug-ins. Raise NotCacheable where one was written after this process began.
    """
    if not (_LAST and _LAST[0][0] is plugins):
        entries = sorted(repr(entry) for found in plugins.registries.values() for entry in found.values())
        digests = {"what is registered": text_digest("\n".join(entries))}
        _LAST[:] = [(plugins, digests | {name: _digest_of_code(name) for name in packages_of(plugins)})]
    return _LAST[0][1]


def environment_digest() -> str:
    """Return the SHA-256 of what is installed beside: Python, where it looks, and the libraries with their versions."""
    found = {Path(path).name for folder in sys.path for path in glob.glob(f"{folder}/*.dist-info")}  # noqa: PTH207
    python = sys.version, sys.flags.optimize, os.environ.get("PYTHONPATH")
    return text_digest(repr((*python, platform.machine(), sorted(found))))


def digest_of(place: str) -> str:
    """Return the SHA-256 of a file, of all files of a folder or a pattern, or of a variable `$NAME`; "" of nothing."""
    if place.startswith("$"):
        value = os.environ.get(place[1:])
        return "" if value is None else text_digest(value)
    if os.path.isfile(place):  # noqa: PTH113 - which takes any text
        return hashlib.sha256(Path(place).read_bytes()).hexdigest()
    pattern = f"{glob.escape(place)}/**" if os.path.isdir(place) else place  # noqa: PTH112
    files = sorted(filter(os.path.isfile, glob.glob(pattern, recursive=True, include_hidden=True)))  # noqa: PTH207
    above = os.path.dirname(place)  # noqa: PTH120 - equal files have one digest, wherever they are
    found = (f"{os.path.relpath(each, above)} {digest_of(each)}" for each in files)
    return text_digest("\n".join(found)) if files else ""


def places_of(patterns: Iterable[str], folder: Path) -> list[str]:
    """Return the places of patterns that start from a folder, or from the user's with `~`; `$NAME` is a variable."""
    return [each if each[:1] == "$" else os.path.abspath(folder / os.path.expanduser(each)) for each in patterns]  # noqa: PTH100, PTH111


def text_digest(text: str) -> str:
    """Return the SHA-256 of a text, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def packages_of(plugins: Plugins) -> list[str]:
    """Return the packages, or lone modules, that kernbench and plug-ins are in, by their first names."""
    targets = [entry.target for found in plugins.registries.values() for entry in found.values()]
    tops = {re.split("[:.]", name)[0] for name in (*targets, *(source.module for source in plugins.sources))}
    return sorted({__name__.partition(".")[0], *tops})


def _digest_of_code(name: str) -> str:
    """Digest the files of a package, or the one of a module; NotCacheable where one was written meanwhile.

    Bytecode, copies of editors and what is hidden is no code.
    """
    spec = getattr(sys.modules.get(name), "__spec__", None) or importlib.util.find_spec(name)
    places = [] if spec is None else map(str, spec.submodule_search_locations or [spec.origin])
    found = []
    for place in places:
        below = [f"{above}/{each}" for above, _, names in os.walk(place) for each in names] or [place]
        found += [path for path in below if not path.endswith((".pyc", "~")) and "/." not in path[len(place) :]]
    for path in filter(is_new, found):
        raise NotCacheable(
            f"the code of {name!r} must be what its files say, and {path!r} was written after this process had begun; "
            "start a new one."
        )
    return text_digest("\n".join(f"{path} {digest_of(path)}" for path in sorted(found)))


def is_new(path: str) -> bool:
    """Whether a file was written, or put in its place, after this process began."""
    try:
        return os.stat(path).st_ctime_ns > IMPORTED_NS  # noqa: PTH116 - a Path costs more than the rest
    except OSError:
        return False
