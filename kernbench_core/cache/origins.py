"""Whose code is whose: packages whose files are digested as a whole, libraries by version, and everybody else's own."""

from __future__ import annotations

import functools
import importlib.metadata
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kernbench_core.cache.trees import Tree, Trees, is_library, root_of


class Origins:
    """Say where code comes from; `ours` are the packages, by their first names, that a key covers already."""

    def __init__(self, trees: Trees, ours: frozenset[str]) -> None:
        self._trees = trees
        self._ours = ours

    def is_ours(self, module: str) -> bool:
        """Whether a module is of a package that a key covers already."""
        return module.partition(".")[0] in self._ours

    def known(self, module: str, names: Mapping[str, Any]) -> str | None:
        """Return what tells the code of a module whose globals are `names`, None for what must be looked into."""
        loaded = sys.modules.get(module)
        if loaded is None or vars(loaded) is not names:
            return None
        if self.is_ours(module):
            return module
        top = module.partition(".")[0]
        version = library_version(top)
        return None if version is None else f"{module} {version}"

    def known_class(self, kind: type) -> str | None:
        """Return what tells the code of a class, None for one that must be looked into."""
        loaded = sys.modules.get(kind.__module__)
        if loaded is None or not (_is_in(kind, loaded) or _has_methods_of(kind, vars(loaded))):
            return None
        return self.known(kind.__module__, vars(loaded))

    def library(self, module: str) -> str:
        """Return the version of a library, "" for what is none."""
        return library_version(module.partition(".")[0]) or ""

    def imported(self, module: str, package: str = "", *, as_loaded: bool = False) -> Iterator[str]:
        """Yield what tells a module that code imports, in a package: its version, or its files and what they import.

        With `as_loaded` raise NotCacheable where one of these was loaded before its file was written.
        """
        for name in (module, f"{package}.{module}") if package else (module,):
            top = name.partition(".")[0]
            if not top or self.is_ours(top):
                continue
            version = library_version(top)
            if version is not None:
                yield f"{name} {version}"
                continue
            root = root_of(top)
            if root is not None:
                tree = self._trees.of(root)
                file = tree.file_of(name)
                yield from files_and_libraries(self._trees, self._ours, tree, file, as_loaded=as_loaded)


def files_and_libraries(
    trees: Trees, ours: frozenset[str], tree: Tree, file: str | None, *, as_loaded: bool
) -> Iterator[str]:
    """Yield the files that a file imports, with their digests, and the libraries, with their versions; in order.

    Without a file it is all of a tree. Packages that are `ours` are left out. With `as_loaded` raise NotCacheable where
    one of the files was written after it had been loaded.
    """
    waiting = [(tree, file)]
    seen: set[tuple[Path, str | None]] = set()
    found: set[str] = set()
    while waiting:
        tree, file = waiting.pop()
        if (tree.root, file) in seen:
            continue
        seen.add((tree.root, file))
        if as_loaded:
            tree.check_loaded()
        files = list(tree.digests) if file is None else tree.imported_from(file)
        found |= {f"{tree.root.parent}/{name} {tree.digests[name]}" for name in files}
        for module in {module for name in files for module in tree.imports_of(name)}:
            top = module.partition(".")[0]
            if top in ours or top == tree.root.name.removesuffix(".py") or top in sys.stdlib_module_names:
                continue
            version = library_version(top)
            if version is not None:
                found.add(f"{top} {version}")
            elif (root := _root(top)) is not None:
                other = trees.of(root)
                waiting.append((other, other.file_of(module)))
    yield from sorted(found)


def _root(top: str) -> Path | None:
    return root_of(top) if top.isidentifier() else None


@functools.cache
def library_version(top: str) -> str | None:
    """Return the version of a library, by its first name, "python" for what comes with it; None for no library."""
    if top in sys.stdlib_module_names or top == "builtins":
        return "python"
    if not top.isidentifier() or top == "__main__":
        return None
    root = root_of(top)
    if root is None or not is_library(root):
        return None
    version = sys.modules[top].__dict__.get("__version__") if top in sys.modules else None  # some warn when asked
    if isinstance(version, str):
        return version
    try:
        return importlib.metadata.version(top)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return _stamp(root)


def _stamp(root: Path) -> str:
    """Return what changes when a library is installed anew that says no version."""
    found = root.stat()
    return f"{found.st_size} {found.st_mtime_ns}"


def _is_in(kind: type, module: types.ModuleType) -> bool:
    """Whether a class is what its module has under its name."""
    found: Any = module
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is kind


def _has_methods_of(kind: type, names: Mapping[str, Any]) -> bool:
    functions = [each for each in vars(kind).values() if isinstance(each, types.FunctionType)]
    return any(each.__globals__ is names for each in functions)
