"""Entries in a folder, each a zip file that is whole or absent; those that were used least recently go first."""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import re
import time
import warnings
import zipfile
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
_ENTRY, _TEMPORARY = ".zip", ".tmp"
_ABOUT: Final = "about.json"
_DIGEST: Final = hashlib.sha256().digest_size
#: After how many s a temporary file is what is left of a process that was killed.
_ABANDONED_S: Final = 3600.0
#: What part of the bound may be written before the folder is looked at again, and what part is free after pruning.
_UNSEEN: Final = 1 / 16


class CacheEntry(NamedTuple):
    """One entry: when it was last used is in ns since 1970; `about` says what it is, None where it is damaged."""

    key: str
    nbytes: int
    used_ns: int
    about: Mapping[str, Any] | None


@attrs.define(eq=False)
class Cache:
    """Keep files by key, 64 hexadecimal digits, in a folder of at most `most_bytes`; processes may share it.

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

    def get(self, key: str) -> tuple[Mapping[str, Any], dict[str, bytes]] | None:
        """Return what an entry is and its files; None where there is none, and where it is damaged: that one goes."""
        path = self._path(key)
        try:
            found = _unpack(path.read_bytes())
            os.utime(path)
        except OSError:
            return None
        except Exception:  # whatever bytes that are no zip file make of `zipfile`
            self.remove(key)
            return None
        return found

    def put(self, key: str, files: Mapping[str, bytes], about: Mapping[str, Any]) -> bool:
        """Keep files under a key, with what they are as JSON, in place of what is there; return whether they are."""
        data = _pack(files, about)
        try:
            if len(data) > self.most_bytes:
                raise OSError(None, f"{format_bytes(len(data))} is more than {format_bytes(self.most_bytes)}, all")
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with whole_file(self._path(key)) as file:  # one that a crash of the machine cuts is damaged
                file.write(data)
        except (OSError, UsageError) as error:
            if not self._warned:
                self._warned = True
                why = f"{getattr(error, 'strerror', None) or error} in {str(self.folder)!r}"
                warnings.warn(f"nothing is kept in the cache: {why}.", KernbenchWarning, stacklevel=3)
            return False
        self._unseen -= len(data)
        if self._unseen < 0:
            self._fit()
        return True

    def entries(self) -> Iterator[CacheEntry]:
        """Yield the entries, those that were used last first."""
        for path, stat in self._files():
            about = None
            with suppress(Exception), zipfile.ZipFile(path) as packed:
                about = json.loads(packed.read(_ABOUT))
            yield CacheEntry(path.stem, stat.st_size, stat.st_mtime_ns, about if isinstance(about, dict) else None)

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
        kept: list[int] = []
        removed: list[int] = []
        for path, stat in self._files():
            keep -= stat.st_size
            if removed or keep < 0 or stat.st_mtime_ns < since:
                self.remove(path.stem)
                removed.append(stat.st_size)
            else:
                kept.append(stat.st_size)
        return removed, kept

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise ValueError(f"a key must be 64 hexadecimal digits, not {key!r}")
        return self.folder / f"{key}{_ENTRY}"

    def _fit(self) -> None:
        """Make room where the folder holds more than it may, and remove what processes left that were killed."""
        for path in self.folder.glob(f"*{_TEMPORARY}"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _ABANDONED_S:
                    path.unlink()
        held = sum(stat.st_size for _, stat in self._files())
        if held > self.most_bytes:
            held = sum(self.prune(round(self.most_bytes * (1 - _UNSEEN)))[1])
        self._unseen = min(self.most_bytes * _UNSEEN, self.most_bytes - held)

    def _files(self) -> list[tuple[Path, os.stat_result]]:
        """Return what is in the folder, what was used last first."""
        found = []
        for path in self.folder.glob(f"*{_ENTRY}"):
            with suppress(OSError):
                if _KEY.fullmatch(path.stem) and not path.is_symlink():
                    found.append((path, path.stat()))
        return sorted(found, key=lambda each: (-each[1].st_mtime_ns, each[0].name))


@functools.cache
def _opened(folder: Path, most_bytes: int) -> Cache:
    """Return one and the same cache for one folder, so that what is wrong with it is said once."""
    return Cache(folder, most_bytes)


def _pack(files: Mapping[str, bytes], about: Mapping[str, Any]) -> bytes:
    """Return a zip file, whose content is not compressed, behind its digest."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as out:
        for name, data in {_ABOUT: json.dumps(about).encode(), **files}.items():
            out.writestr(zipfile.ZipInfo(name), data)
    return hashlib.sha256(packed.getvalue()).digest() + packed.getvalue()


def _unpack(data: bytes) -> tuple[Mapping[str, Any], dict[str, bytes]]:
    """Return what was packed; raise whatever bytes that are no such file lead to."""
    if hashlib.sha256(data[_DIGEST:]).digest() != data[:_DIGEST]:
        raise ValueError("an entry must have the content of its digest")
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    return json.loads(files.pop(_ABOUT)), files
