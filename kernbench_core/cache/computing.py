"""Digests of everything that computes: core, and the packages and files of the plug-ins."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from kernbench_core.cache.origins import Origins, files_and_libraries
from kernbench_core.cache.store import Cache
from kernbench_core.cache.trees import Trees, root_of
from kernbench_core.registration.entries import OFFERS

if TYPE_CHECKING:
    from kernbench_core.plugins import Plugins

_CORE: Final = __name__.partition(".")[0]
#: So many sets of plug-ins are remembered with the packages that they are in.
_MOST: Final = 8


@attrs.frozen
class ComputingCode:
    """All code that a run may execute but the user's own: digests by package or file, and what says whose code is."""

    digests: Mapping[str, str]
    origins: Origins


def computing_code(plugins: Plugins, cache: Cache, *, closely: bool = False) -> ComputingCode:
    """Digest core and the plug-ins as they are now; files that nobody writes to are looked at `closely` only.

    Raise NotCacheable where a file was written after it had been loaded.
    """
    trees = Trees(cache)
    packages, files, registered = _places(plugins)
    ours = frozenset(packages)
    digests = {"what is registered": registered}
    for top in sorted(packages):
        root = root_of(top)
        if root is not None:
            digests[top] = _digest(trees, ours, root, whole=True, closely=closely)
    for file in sorted(files):
        digests[file] = _digest(trees, ours, Path(file), whole=False, closely=closely)
    return ComputingCode(digests, Origins(trees, ours))


def _digest(trees: Trees, ours: frozenset[str], root: Path, *, whole: bool, closely: bool) -> str:
    tree = trees.of(root, closely=closely)
    tree.check_loaded()
    if root.name in ours and root.name.startswith("kernbench_") and root_of(_CORE) in (root, root.parent / _CORE):
        return tree.sha256  # the libraries of kernbench's own packages are in every key
    file = None if whole else tree.file_of(root.stem)
    parts = [tree.sha256, *files_and_libraries(trees, ours, tree, file, as_loaded=True)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


_PLACES: dict[int, tuple[Plugins, frozenset[str], frozenset[str], str]] = {}


def _places(plugins: Plugins) -> tuple[frozenset[str], frozenset[str], str]:
    """Return the packages, by their first names, the files that plug-ins are in, and a digest of what they register."""
    known = _PLACES.get(id(plugins))
    if known is None or known[0] is not plugins:
        if len(_PLACES) >= _MOST:
            _PLACES.clear()
        files = frozenset(source.file for source in plugins.sources if source.file)
        named = {Path(file).stem for file in files}
        packages = frozenset({_CORE, *(top for top in _tops(plugins) if top not in named)})
        entries = sorted(repr(entry) for kind in OFFERS for entry in getattr(plugins, kind).values())
        registered = hashlib.sha256("\n".join(entries).encode()).hexdigest()
        known = _PLACES[id(plugins)] = plugins, packages, files, registered
    return known[1:]


def _tops(plugins: Plugins) -> Iterator[str]:
    for source in plugins.sources:
        yield source.module.partition(".")[0]
    for kind in OFFERS:
        for entry in getattr(plugins, kind).values():
            yield entry.target.partition(":")[0].partition(".")[0]
