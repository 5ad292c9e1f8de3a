"""What must be installed alike where points are evaluated, and the sentence that names what is not.

A point is to be the same wherever it is evaluated. So workers need the same kernbench, the same plug-ins, and in each
of them the same files: models are code, and code of one version may still differ in a working copy.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kernbench_core.package import __version__
from kernbench_core.plugins import Plugins

_OWN = __name__.partition(".")[0]


def installed(plugins: Plugins) -> dict[str, Any]:
    """Return what is installed here, as plain data: the version, those of plug-ins by name, SHA-256 by file.

    Plug-ins that are files are left out: they travel with the sweep.
    """
    sources = [source for source in plugins.sources if not source.file]
    packages = sorted({_OWN, *(source.module.partition(".")[0] for source in sources)})
    files = {name: _sha256(path) for package in packages for name, path in _files(package)}
    return {
        "kernbench": __version__,
        "plugins": {source.name: str(source.provider) for source in sources},
        "files": dict(sorted(files.items())),
    }


def differences(who: str, found: object, wanted: Mapping[str, Any]) -> str | None:
    """Return how what `who` has installed differs from what is wanted, as a sentence; None where it does not.

    `found` may also be the exception that came in place of it.
    """
    if isinstance(found, BaseException):
        return _cannot_tell(who, found)
    assert isinstance(found, Mapping), "it comes of `installed`"
    if found["kernbench"] != wanted["kernbench"]:
        return (
            f"{who} must have kernbench {wanted['kernbench']}, as is here, not {found['kernbench']}; install it there."
        )
    for name in sorted(wanted["plugins"].keys() | found["plugins"].keys()):
        here, there = (told["plugins"].get(name) for told in (wanted, found))
        if here is None:
            return f"{who} must have no plug-in {name!r}, as is here, and has it of {there}; install the same."
        if there != here:
            has = "and does not have it" if there is None else f"not of {there}"
            return f"{who} must have plug-in {name!r} of {here}, as is here, {has}; install the same."
    names = found["files"].keys() | wanted["files"].keys()
    others = sorted(name for name in names if found["files"].get(name) != wanted["files"].get(name))
    if not others:
        return None
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    return (
        f"{who} must have the same files installed as are here, and {others[0]!r}{more} differ"
        f"{'s' if not more else ''}; install the same there."
    )


def _cannot_tell(who: str, error: BaseException) -> str:
    told = f"{type(error).__name__}: {error}"
    if "ModuleNotFoundError" in told and _OWN in told:
        return f"{who} must have kernbench {__version__} installed, and has no such version; install it there."
    return f"{who} must be able to begin a sweep, and that failed with {told}; look at its log."


def _files(package: str) -> Iterator[tuple[str, Path]]:
    """Yield the files of a package or module that can be imported, by path relative to the folder that it lies in."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        return
    for root in map(Path, spec.submodule_search_locations or ()):
        for folder, folders, files in os.walk(root):
            folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith(".")]
            paths = (Path(folder, name) for name in files if not name.startswith(".") and not name.endswith(".pyc"))
            yield from ((path.relative_to(root.parent).as_posix(), path) for path in paths)
    if not spec.submodule_search_locations and spec.origin is not None:
        yield Path(spec.origin).name, Path(spec.origin)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
