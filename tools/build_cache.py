"""Keep compiled modules outside the tree, each under a key of all that it was made of: none is made twice.

`setup.py` does so where KERNBENCH_BUILD_CACHE names a folder. A key is the SHA-256 of the sources that a module sees
and of what makes it; an entry is a file, written whole or not at all, which begins with a checksum of its key and of
the rest of it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: How the name of an entry ends: nothing else in the folder is ever removed.
_SUFFIX = ".kernbench-module"
_DAYS = 30
_ENTRIES = 1000


def key(makers: Iterable[str], sources: Iterable[str]) -> str:
    """Return the key of a module, in hex, by what makes it and by the names and contents of its sources."""
    parts = [part.encode() for part in makers]
    for source in sorted(sources):
        parts += [source.encode(), Path(source).read_bytes()]
    found = hashlib.sha256()
    for part in parts:
        found.update(b"%d:" % len(part))
        found.update(part)
    return found.hexdigest()


def sources_seen(source: str, tree: Any) -> list[str]:
    """Return the sources below the present folder that a module is made of.

    `tree` is Cython's tree of dependencies: it knows which types of others the `source` sees, directly or by others'.
    What it sees of Cython's own has the version of Cython.
    """
    own = [str(Path(source).with_suffix(suffix)) for suffix in (".py", ".pyx", ".pxd")]
    seen = [os.path.normpath(file) for file in tree.all_dependencies(source)]
    return sorted({*filter(os.path.isfile, own), *(file for file in seen if not os.path.isabs(file))})  # noqa: PTH117


def makers(compiler: Any, flags: Sequence[str], translator: Mapping[str, object]) -> list[str]:
    """Return what makes modules of their sources: Python, the translator to C, and the C compiler with its flags.

    `compiler` is that of setuptools, as it is about to compile: its commands have what Python, the environment and the
    files of settings add. The compiler itself says its version, its target, and where it finds headers.

    Raises:
        OSError: There is no such compiler.
    """
    ask = [*compiler.compiler_so, *flags, "-v", "-E", "-x", "c", os.devnull]
    said = subprocess.run(
        ask, cwd=os.sep, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False
    )
    of_environment = os.path.join(sys.prefix, "")  # noqa: PTH118 - headers of the environment, of which none is read
    headers = [folder for folder in compiler.include_dirs if not folder.startswith(of_environment)]
    settings = [compiler.macros, compiler.libraries, compiler.library_dirs, compiler.runtime_library_dirs]
    commands = [compiler.compiler_so, compiler.linker_so, list(flags), headers, *settings, compiler.objects]
    python = [sys.version, str(sysconfig.get_config_var("EXT_SUFFIX"))]
    return [*python, repr(sorted(translator.items())), repr(commands), said.stdout]


class BuildCache:
    """Compiled modules in a folder: those of one build, by their names, among those of others."""

    def __init__(self, folder: Path, makers: Sequence[str], sources: Mapping[str, Sequence[str]]) -> None:
        self._folder = folder
        self._makers = makers
        self._sources = sources
        self._keys = {name: key(makers, seen) for name, seen in sources.items()}

    def get(self, name: str) -> bytes | None:
        """Return a module as it was compiled; None where it was not, or where its bytes are not those written."""
        entry = self._entry(name)
        try:
            checksum, _, content = entry.read_bytes().partition(b"\n")
            if checksum != self._checksum(name, content):
                return None
            os.utime(entry)  # it was used today
        except OSError:
            return None
        return content

    def put(self, name: str, content: bytes) -> None:
        """Keep a compiled module, unless a source of it was changed meanwhile: of which it was made is not known then.

        Raises:
            OSError: The folder cannot be written to.
        """
        if key(self._makers, self._sources[name]) != self._keys[name]:
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=self._folder, suffix=_SUFFIX, delete=False) as file:
            file.write(self._checksum(name, content) + b"\n" + content)
        Path(file.name).replace(self._entry(name))

    def prune(self) -> None:
        """Remove what was not used for thirty days, and of the rest all but the thousand that were used last."""
        times = {}
        for file in self._folder.glob(f"*{_SUFFIX}"):
            try:
                times[file] = file.stat().st_mtime
            except FileNotFoundError:  # another build removed it
                continue
        newest = sorted(times, key=times.__getitem__, reverse=True)
        oldest = time.time() - _DAYS * 24 * 3600
        for place, file in enumerate(newest):
            if place >= _ENTRIES or times[file] < oldest:
                file.unlink(missing_ok=True)

    def _entry(self, name: str) -> Path:
        return self._folder / f"{self._keys[name]}{_SUFFIX}"

    def _checksum(self, name: str, content: bytes) -> bytes:
        return hashlib.sha256(self._keys[name].encode() + content).hexdigest().encode()
