"""Entries in a folder, each a file that is whole or absent; those that were used least recently go first."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import attrs

from kernbench_core.errors import KernbenchWarning, UsageError
from kernbench_core.process.whole_files import whole_file
from kernbench_core.units import format_bytes

#: Variables of the environment: the folder, and how many bytes it may hold.
FOLDER: Final = "KERNBENCH_CACHE"
MOST: Final = "KERNBENCH_CACHE_BYTES"
DEFAULT_BYTES: Final = 2 << 30
_KEY: Final = re.compile(r"[0-9a-f]{64}")
_ENTRY, _TEMPORARY = ".entry", ".tmp"
_DIGEST: Final = hashlib.sha256().digest_size
#: After how many s a temporary file is what is left of a process that was killed.
_ABANDONED_S: Final = 3600.0
#: What part of the bound may be written before the folder is looked at again, and what part is free after pruning.
_UNSEEN: Final = 1 / 16


class CacheEntry(NamedTuple):
    """One entry: when it was last used is in ns since 1970; `about` says what it is, its kind and name first."""

    key: str
    nbytes: int
    used_ns: int
    about: Mapping[str, Any]


@attrs.define(eq=False)
class Cache:
    """Keep bytes by key, 64 hexadecimal digits, in a folder of at most `most_bytes`; processes may share it.

    What cannot be written is a warning, once, and no error: a cache is never in the way of an answer.
    """

    folder: Path
    most_bytes: int = DEFAULT_BYTES
    #: How many bytes may be written before the folder is looked at again.
    _unseen: float = attrs.field(default=0.0, init=False)
    _warned: bool = attrs.field(default=False, init=False)

    @classmethod
    def of_user(cls) -> Cache:
        """Return the user's: in $KERNBENCH_CACHE, else in kernbench of $XDG_CACHE_HOME or of ~/.cache.

        UsageError where $KERNBENCH_CACHE_BYTES is no number of bytes.
        """
        base = Path(os.environ.get("XDG_CACHE_HOME", ""))
        base = base if base.is_absolute() else Path("~/.cache").expanduser()
        given = os.environ.get(FOLDER) or base / "kernbench"
        text = os.environ.get(MOST) or str(DEFAULT_BYTES)
        if not re.fullmatch(r"[0-9]{1,18}", text):
            raise UsageError(f"variable {MOST} must be a number of bytes, as {DEFAULT_BYTES}, not {text!r}.")
        return _opened(Path(given).absolute(), int(text))

    def get(self, key: str) -> tuple[Mapping[str, Any], bytes] | None:
        """Return what an entry is and its bytes; None where there is none, and where it is damaged: that one goes."""
        path = self._path(key)
        try:
            found = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        content = found[_DIGEST:]
        if hashlib.sha256(content).digest() != found[:_DIGEST]:
            self.remove(key)
            return None
        about, _, data = content.partition(b"\n")
        return json.loads(about), data

    def put(self, key: str, about: Mapping[str, Any], data: bytes = b"") -> bool:
        """Keep bytes under a key, with what they are as JSON, in place of what is there; return whether they are."""
        content = json.dumps(about).encode() + b"\n" + data
        data = hashlib.sha256(content).digest() + content
        try:
            if len(data) > self.most_bytes:
                raise OSError(None, f"{format_bytes(len(data))} is more than {format_bytes(self.most_bytes)}, all")
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with whole_file(self._path(key)) as file:  # one that a crash of the machine cuts is damaged
                file.write(data)
        except (OSError, UsageError) as error:
            why = f"{getattr(error, 'strerror', None) or error} in {str(self.folder)!r}"
            if not self._warned:
                warnings.warn(f"nothing is kept in the cache: {why}.", KernbenchWarning, stacklevel=3)
            self._warned = True
            return False
        self._unseen -= len(data)
        if self._unseen < 0:
            self._fit()
        return True

    def entries(self) -> Iterator[CacheEntry]:
        """Yield the entries, those that were used last first."""
        for path, stat in self._files():
            about = {"kind": "-", "name": "damaged"}
            with suppress(OSError, ValueError, TypeError), path.open("rb") as file:
                file.seek(_DIGEST)
                about = dict(json.loads(file.readline()))
            yield CacheEntry(path.stem, stat.st_size, stat.st_mtime_ns, about)

    def remove(self, key: str) -> None:
        """Remove what is under a key, if anything is."""
        with suppress(OSError):
            self._path(key).unlink(missing_ok=True)

    def prune(self, keep_bytes: int | None = None, older_s: float | None = None) -> tuple[list[int], list[int]]:
        """Remove entries that were last used longer ago than `older_s`, and the least recent beyond `keep_bytes`.

        The bound is the cache's own by default. Return the bytes of each that was removed, and of each that is kept.
        """
        keep = self.most_bytes if keep_bytes is None else keep_bytes
        since = 0 if older_s is None else time.time_ns() - round(older_s * 1e9)
        removed, kept = list[int](), list[int]()
        for path, stat in self._files():
            keep -= stat.st_size
            goes = keep < 0 or stat.st_mtime_ns < since
            (removed if goes else kept).append(stat.st_size)
            if goes:
                self.remove(path.stem)
        return removed, kept

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_ENTRY}"

    def _fit(self) -> None:
        """Make room for what is written until the next time, and remove what processes left that were killed."""
        for path in self.folder.glob(f"*{_TEMPORARY}"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _ABANDONED_S:
                    path.unlink()
        self._unseen = self.most_bytes * _UNSEEN
        self.prune(round(self.most_bytes - self._unseen))

    def _files(self) -> list[tuple[Path, os.stat_result]]:
        """Return what is in the folder, what was used last first."""
        found = []
        for path in self.folder.glob(f"*{_ENTRY}"):
            with suppress(OSError):
                if _KEY.fullmatch(path.stem) and not path.is_symlink():
                    found.append((path, path.stat()))
        return sorted(found, key=lambda each: (-each[1].st_mtime_ns, each[0].name))


#: One and the same cache for one folder, so that what is wrong with it is said once.
_opened: Final = functools.cache(Cache)
