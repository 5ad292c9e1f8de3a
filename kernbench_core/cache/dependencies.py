"""What an answer depends on: the code of kernbench and of its plug-ins, loaded modules, files and variables."""

from __future__ import annotations

import glob
import hashlib
import importlib.util
import os
import platform
import re
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kernbench_core.errors import KernbenchError
from kernbench_core.package import IMPORTED_NS

if TYPE_CHECKING:
    from kernbench_core.plugins import Plugins

_CORE: Final = __name__.partition(".")[0]
#: What modules are called that the files of benches were executed as; their text is in the key.
_OF_BENCH: Final = "kernbench_bench_"
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
        places = {source.file: [source.file] for source in plugins.sources if source.file}
        for name in _packages_of(plugins):
            spec = getattr(sys.modules.get(name), "__spec__", None) or importlib.util.find_spec(name)
            places[name] = [] if spec is None else list(map(str, spec.submodule_search_locations or [spec.origin]))
        _LAST[:] = [(plugins, digests | {name: _digest_of_code(name, found) for name, found in places.items()})]
    return _LAST[0][1]


@cache
def environment_digest() -> str:
    """Return the SHA-256 of what is installed beside: Python, where it looks, and the libraries with their versions."""
    found = {Path(path).name for folder in sys.path for path in glob.glob(f"{folder}/*.dist-info")}  # noqa: PTH207
    looks = os.environ.get("PYTHONPATH")
    return text_digest(repr((sys.version, sys.flags.optimize, platform.machine(), looks, sorted(found))))


def loaded_files(plugins: Plugins) -> dict[str, str | None]:
    """Return the SHA-256 of the files of all modules that are loaded and neither installed nor of a plug-in.

    It is None where a file was written after this process began: what is loaded may be what it was before; and "" where
    it is gone. Files that kernbench executed, as algorithms are, and their own modules, may be written: it is None
    where they are not what was executed.
    """
    others = {"__main__", "__mp_main__", *_packages_of(plugins)}  # the main module, in two names
    found, executed = set(), dict[str, str]()
    for name, module in list(sys.modules.items()):
        file, spec = (getattr(module, "__dict__", {}).get(each) for each in ("__file__", "__spec__"))
        if name.partition(".")[0] in others or name.startswith(_OF_BENCH) or not isinstance(file, str):
            continue
        sources: Any = getattr(spec, "loader_state", None)
        if hasattr(sources, "hashes"):
            executed |= {str(sources.folder / each): digest for each, digest in sources.hashes.items()}
        elif not file.startswith(_installed()):
            path = Path(file).absolute()
            found.add(str(next((each for each in (path, *path.parents) if each.is_file()), path)))  # or a zip file
    loaded = {path: None if _is_new(path) else digest_of(path) for path in sorted(found)}
    return loaded | {path: digest if digest_of(path) == digest else None for path, digest in executed.items()}


def digest_of(place: str) -> str:
    """Return the SHA-256 of what a place holds: a file, all files of a folder or of a pattern, or `$NAME`, a variable.

    It is "" where there is nothing.
    """
    if place.startswith("$"):
        value = os.environ.get(place[1:])
        return "" if value is None else text_digest(value)
    if os.path.isfile(place):  # noqa: PTH113 - which takes any text
        return hashlib.sha256(Path(place).read_bytes()).hexdigest()
    pattern = f"{place}/**" if os.path.isdir(place) else place  # noqa: PTH112
    files = sorted(filter(os.path.isfile, glob.glob(pattern, recursive=True, include_hidden=True)))  # noqa: PTH207
    return text_digest("\n".join(f"{path} {digest_of(path)}" for path in files)) if files else ""


def places_of(patterns: Iterable[str], folder: Path) -> list[str]:
    """Return the places of patterns that start from a folder, or from the user's with `~`; `$NAME` is a variable."""
    return [each if each[:1] == "$" else os.path.abspath(folder / os.path.expanduser(each)) for each in patterns]  # noqa: PTH100, PTH111


def text_digest(text: str) -> str:
    """Return the SHA-256 of a text, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _packages_of(plugins: Plugins) -> list[str]:
    """Return the packages that kernbench and plug-ins are in, by their first names; not what is a lone file."""
    targets = [entry.target for found in plugins.registries.values() for entry in found.values()]
    tops = {re.split("[:.]", name)[0] for name in (*targets, *(source.module for source in plugins.sources))}
    return sorted({_CORE, *tops} - {Path(source.file).stem for source in plugins.sources if source.file})


def _files_of(place: str) -> list[str]:
    """Return a file, or those below a folder."""
    if not Path(place).is_dir():
        return [place]
    found = []
    for above, folders, files in os.walk(place):
        folders[:] = [name for name in folders if name != "__pycache__" and name[0] != "."]
        found += [f"{above}/{name}" for name in files if not name.endswith((".pyc", "~")) and name[0] != "."]
    return sorted(found)


def _digest_of_code(name: str, places: Sequence[str]) -> str:
    """Digest a package, or a file as what it holds; NotCacheable where it was written meanwhile."""
    files = [path for place in places for path in _files_of(place)]
    for path in filter(_is_new, files):
        raise NotCacheable(
            f"the code of {name!r} must be what its files say, and {path!r} was written after this process had begun; "
            "start a new one."
        )
    if files == [name]:
        return digest_of(name)
    return text_digest("\n".join(f"{path} {digest_of(path)}" for path in files))


def _is_new(path: str) -> bool:
    """Whether a file was written, or put in its place, after this process began."""
    try:
        return os.stat(path).st_ctime_ns > IMPORTED_NS  # noqa: PTH116 - a Path costs more than the rest
    except OSError:
        return False


@cache
def _installed() -> tuple[str, ...]:
    """Return the folders of Python and of what is installed beside it, with a slash behind."""
    paths = sysconfig.get_paths()
    found = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib") if name in paths]
    found += [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    return tuple(f"{each}{os.sep}" for folder in found for each in (folder, os.path.realpath(folder)))
