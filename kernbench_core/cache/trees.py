"""Digests of the files that code is in: of a package with all that lies in it, or of one file.

A file is read anew when its size, its times or its inode are others. What was read is kept in the cache, under what all
of its files' sizes, times and inodes give, unless one of them has just been written.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import os
import re
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from kernbench_core.cache.not_cacheable import NotCacheable
from kernbench_core.cache.store import Cache
from kernbench_core.compiled import is_made
from kernbench_core.process import BEGAN_NS

Stamp: TypeAlias = tuple[int, int, int, int]
"""Size, time of the last change of the content and of the file (ns since 1970), inode."""

#: Trees of more files are looked at again after this many s only, and before anything is kept.
_LARGE, _LARGE_S = 64, 0.1
#: A file that was written so many ns ago may be written again without another stamp.
_SETTLED_NS: Final = 2_000_000_000
_GONE: Final[Stamp] = (-1, 0, 0, 0)
_IMPORT: Final = re.compile(r"(?:\bfrom\s+(\.*[\w.]*)\s+)?\bimport\s*(\([^)]*\)|[^\n;#]*)")
_NAME: Final = re.compile(r"\s*([\w.]+)")


class Tree:
    """A package's folder, or a module's file, as it is now. Files are named relative to the folder that it lies in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        #: The SHA-256 of each file, in hex.
        self.digests: Mapping[str, str] = {}
        self.sha256 = ""
        self._stamps: dict[str, Stamp] = {}
        self._looked_at = 0.0
        #: Whether no file was written just before it was read, and so may have been written again since.
        self._settled = False
        self._since = 0
        #: Modules that were written since this process began.
        self._late: dict[str, Stamp] = {}
        self._imports: dict[tuple[str, str], tuple[str, ...]] = {}
        #: Files that were not loaded when they were looked at, as they were then.
        self._unloaded: dict[str, Stamp] = {}
        self._checked: dict[str, Stamp] = {}

    def look(self, cache: Cache, *, closely: bool = False) -> None:
        """Look whether anything is another than it was; what is large, and was seen a moment ago, only `closely`."""
        now = time.monotonic()
        if len(self._stamps) > _LARGE and now - self._looked_at < _LARGE_S and not closely:
            return
        changed = any(_stamp(path) != stamp for path, stamp in self._stamps.items())
        if changed or not self._settled:
            self._read(cache)
        self._looked_at = now

    def _read(self, cache: Cache) -> None:
        """Find the files, and what is in those that may be others than they were."""
        stamps = {path: _stamp(path) for path in _paths(self.root)}
        key = hashlib.sha256(json.dumps(["tree", str(self.root), sorted(stamps.items())]).encode()).hexdigest()
        since = time.time_ns() - _SETTLED_NS
        self._settled = all(max(stamp[1:3]) < since for stamp in stamps.values())
        kept = cache.get(key) if self._settled else None
        if kept is None:
            digests = self._read_files(stamps)
            if self._settled:
                about = {"kind": "files", "name": str(self.root)}
                cache.put(key, {"digests": json.dumps(digests).encode()}, about)
        else:
            digests = json.loads(kept["digests"])
        self.digests, self._stamps, self._since = digests, stamps, since
        written = {path: stamp for path, stamp in stamps.items() if path.endswith(".py")}
        self._late = {path: stamp for path, stamp in written.items() if max(stamp[1:3]) >= BEGAN_NS}
        parts = [f"{name} {sha256}" for name, sha256 in sorted(digests.items())]
        self.sha256 = hashlib.sha256("\n".join([str(self.root), *parts]).encode()).hexdigest()

    def _read_files(self, stamps: Mapping[str, Stamp]) -> dict[str, str]:
        """Digest the files; those that had not been written for a while when they were read are the same."""
        found = {}
        for path, stamp in stamps.items():
            if not path.endswith("/"):
                name = self._name(path)
                same = self._stamps.get(path) == stamp and max(stamp[1:3]) < self._since
                found[name] = self.digests[name] if same else _digest(path)
        return found

    def _name(self, path: str) -> str:
        return path[len(str(self.root.parent)) + 1 :]

    def check_loaded(self) -> None:
        """Raise NotCacheable for a module that is loaded, and whose file was written since this process began."""
        late = {path: stamp for path, stamp in self._late.items() if self._checked.get(path) != stamp}
        if not late:
            return
        loaded = {str(getattr(module, "__file__", None)): module for module in list(sys.modules.values())}
        for path, stamp in late.items():
            module = loaded.get(path)
            if module is None:
                self._unloaded[path] = stamp
            elif self._unloaded.get(path) == stamp or _is_text_of(module, path):
                self._checked[path] = stamp
            else:
                raise NotCacheable(
                    f"module {module.__name__!r} must be what its file says, and that was written after this process "
                    "had begun; start a new one."
                )

    def imported_from(self, start: str) -> list[str]:
        """Return a file and those of this tree that it imports, and these, and so on."""
        found: dict[str, None] = {}
        waiting = [start]
        while waiting:
            name = waiting.pop()
            if name not in found and name in self.digests:
                found[name] = None
                waiting += (file for module in self.imports_of(name) for file in _files_of(module))
        return list(found)

    def imports_of(self, name: str) -> tuple[str, ...]:
        """Return the modules that a file names in imports, with what it takes of them: more than these, at times."""
        key = name, self.digests[name]
        if name.endswith(".py") and key not in self._imports:
            try:
                self._imports[key] = _imports((self.root.parent / name).read_bytes(), name)
            except OSError:
                return ()
        return self._imports.get(key, ())

    def file_of(self, module: str) -> str | None:
        """Return the file of a module; None where it is not in this tree."""
        return next((name for name in reversed(_files_of(module)) if name in self.digests), None)


#: The trees that this process has looked at: what they were is the same whoever asks.
_TREES: dict[Path, Tree] = {}


class Trees:
    """Gives trees; what is read of one is kept in a cache, for other processes."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def of(self, root: Path, *, closely: bool = False) -> Tree:
        """Return the tree of a folder or a file as it is now."""
        tree = _TREES.get(root)
        if tree is None:
            tree = _TREES[root] = Tree(root)
        tree.look(self._cache, closely=closely)
        return tree


def root_of(top: str) -> Path | None:
    """Return the folder of a package, or the file of a module, by its first name; None where it has none."""
    module = sys.modules.get(top)
    spec: Any = getattr(module, "__spec__", None)
    origin = getattr(module, "__file__", None)
    if origin is None:
        try:
            spec = importlib.util.find_spec(top) if spec is None else spec
        except (ImportError, ValueError):
            spec = None
        origin = getattr(spec, "origin", None)
    folders = [*(getattr(spec, "submodule_search_locations", None) or ())]
    if folders:
        return Path(folders[0])
    if origin is None or origin in ("built-in", "frozen"):
        return None
    return Path(origin).parent if Path(origin).name == "__init__.py" else Path(origin)


@functools.cache
def is_library(root: Path) -> bool:
    """Whether a folder or file is part of Python, or of what is installed beside it."""
    return any(root.is_relative_to(folder) for folder in _libraries())


def is_library_path(path: str) -> bool:
    """Whether a file is part of Python, or of what is installed beside it."""
    return path.startswith(_library_prefixes())


@functools.cache
def _library_prefixes() -> tuple[str, ...]:
    return tuple(f"{folder}{os.sep}" for folder in _libraries())


@functools.cache
def _libraries() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    found = [Path(paths[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib") if name in paths]
    more = [Path(path) for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    return tuple(dict.fromkeys([*found, *(each.resolve() for each in found), *more]))


def _paths(root: Path) -> Iterator[str]:
    """Yield the files of a tree in order, and its folders, with a slash at the end."""
    if not root.is_dir():
        yield str(root)
        return
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
        yield f"{folder}/"
        kept = (name for name in sorted(files) if not name.endswith((".pyc", "~")) and name[0] != ".")
        yield from (path for path in (f"{folder}/{name}" for name in kept) if not is_made(path))


def _stamp(path: str) -> Stamp:
    try:
        found = os.stat(path)  # noqa: PTH116 - a Path costs more than the rest
    except OSError:
        return _GONE
    if path.endswith("/"):  # of a folder only its names count
        return 0, found.st_mtime_ns, 0, found.st_ino
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def _imports(data: bytes, name: str) -> tuple[str, ...]:
    """Return what may be a module that a text imports: more than it does, where a string reads like an import."""
    package = name.removesuffix(".py").removesuffix("/__init__").split("/")
    package = package if name.endswith("/__init__.py") else package[:-1]
    found: dict[str, None] = {}
    for base, names in _IMPORT.findall(data.decode("utf-8", "replace").replace("\\\n", " ")):
        taken = [each[1] for part in names.strip("()").split(",") if (each := _NAME.match(part))]
        if base.startswith("."):
            level = len(base) - len(base.lstrip("."))
            above = package[: len(package) - level + 1]
            base = ".".join([*above, *([base.lstrip(".")] if base.strip(".") else [])])
        if base:
            found[base] = None
        found.update((f"{base}.{each}" if base else each, None) for each in taken)
    return tuple(found)


def _files_of(module: str) -> list[str]:
    """Return the files that importing a module may load, outermost first."""
    parts = module.split(".")
    found = []
    for count in range(1, len(parts) + 1):
        at = "/".join(parts[:count])
        found += [f"{at}/__init__.py", f"{at}.py"]
    return found


def _is_text_of(module: Any, path: str) -> bool:
    """Whether a module that keeps its text, as a plug-in's file does, was made of what the file says now."""
    text = getattr(module, "__kernbench_text__", None)
    return text is not None and Path(path).read_bytes() == text
