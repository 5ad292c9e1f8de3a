"""Entries in a folder, each a file that is whole or absent; those that were used least recently go first."""

from __future__ import annotations

import functools
import os
import re
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import attrs

from kernbench_core.cache.entry import DamagedEntry, OtherForm, pack, read_head, unpack
from kernbench_core.errors import KernbenchWarning, UsageError
from kernbench_core.units import format_bytes

#: Variables of the environment: the folder, and how many bytes it may hold.
FOLDER: Final = "KERNBENCH_CACHE"
MOST: Final = "KERNBENCH_CACHE_BYTES"
DEFAULT_BYTES: Final = 2 << 30
_KEY: Final = re.compile(r"[0-9a-f]{64}")
_SHARD: Final = re.compile(r"[0-9a-f]{2}")
_ENTRY: Final = ".entry"
_TEMPORARY: Final = ".tmp"
#: After how many s a temporary file is what is left of a process that was killed.
_ABANDONED_S: Final = 3600.0
#: What part of the bound may be written before the folder is looked at again, and what part is free after pruning.
_UNSEEN: Final = 1 / 16
_HEAD_BYTES: Final = 1 << 16


@attrs.frozen
class CacheEntry:
    """One entry: its key, bytes of its file, when it was made and last used (ns since 1970), and what it is.

    `about` is None where another version wrote it, or it is damaged.
    """

    key: str
    nbytes: int
    used_ns: int
    made_ns: int | None
    about: Mapping[str, Any] | None


@attrs.frozen
class Pruned:
    """How many entries were removed and kept, with their bytes."""

    removed: int
    removed_bytes: int
    kept: int
    kept_bytes: int


@attrs.frozen
class _File:
    path: str
    name: str
    nbytes: int
    used_ns: int


@attrs.define(eq=False)
class Cache:
    """Keep files by key in a folder of at most `most_bytes`; processes may share it.

    A key is 64 hexadecimal digits, a SHA-256 of all that the files depend on. What cannot be written is a warning,
    once, and no error: a cache is never in the way of an answer.
    """

    folder: Path
    most_bytes: int = DEFAULT_BYTES
    #: How many bytes there were when the folder was looked at last, and how many have been written since.
    _held: int | None = attrs.field(default=None, init=False)
    _written: int = attrs.field(default=0, init=False)
    _warned: bool = attrs.field(default=False, init=False)

    @classmethod
    def of_user(cls) -> Self:
        """Return the user's: in $KERNBENCH_CACHE, else in kernbench of $XDG_CACHE_HOME or of ~/.cache.

        UsageError where $KERNBENCH_CACHE_BYTES is no number of bytes.
        """
        given = os.environ.get(FOLDER)
        if not given:
            base = os.environ.get("XDG_CACHE_HOME", "")
            given = str((Path(base) if Path(base).is_absolute() else Path("~/.cache").expanduser()) / "kernbench")
        text = os.environ.get(MOST) or str(DEFAULT_BYTES)
        if not re.fullmatch(r"[0-9]{1,18}", text):
            raise UsageError(f"variable {MOST} must be a number of bytes, as {DEFAULT_BYTES}, not {text!r}.")
        kind: Any = cls
        found: Self = _opened(kind, Path(given).absolute(), int(text))
        return found

    def get(self, key: str) -> dict[str, bytes] | None:
        """Return the files under a key, None where there are none; an entry that is damaged goes."""
        path = self._path(key)
        try:
            with open(path, "rb", opener=_no_link) as file:
                data = file.read()
        except OSError:
            return None
        try:
            found = unpack(key, data)
        except OtherForm:
            return None
        except DamagedEntry:
            _remove(path)
            return None
        with suppress(OSError):
            os.utime(path)
        return found

    def put(self, key: str, files: Mapping[str, bytes], about: Mapping[str, Any]) -> bool:
        """Keep files under a key, in place of what is there; `about` is JSON that says what they are.

        Return whether they are kept.
        """
        pieces = pack(key, files, about, time.time_ns())
        size = sum(map(len, pieces))
        if size > self.most_bytes:
            self._warn(f"an entry of {format_bytes(size)} is larger than it may be, {format_bytes(self.most_bytes)}")
            return False
        try:
            self._write(self._path(key), pieces)
        except OSError as error:
            self._warn(f"{error.strerror or error} in {str(self.folder)!r}")
            return False
        self._written += size
        seen = self._held is not None and self._written <= self.most_bytes * _UNSEEN
        if not seen or (self._held or 0) + self._written > self.most_bytes:
            self._fit()
        return True

    def entries(self) -> Iterator[CacheEntry]:
        """Yield the entries, those that were used last first."""
        for file in sorted(self._files(), key=lambda each: (-each.used_ns, each.name)):
            try:
                with open(file.path, "rb", opener=_no_link) as opened:
                    head = read_head(_start(opened))
            except DamagedEntry:
                yield CacheEntry(file.name, file.nbytes, file.used_ns, None, None)
            except OSError:
                continue
            else:
                yield CacheEntry(file.name, file.nbytes, file.used_ns, head.made_ns, head.about)

    def remove(self, key: str) -> None:
        """Remove what is under a key, if anything is."""
        _remove(self._path(key))

    def prune(self, keep_bytes: int | None = None, older_s: float | None = None) -> Pruned:
        """Remove entries that were last used longer ago than `older_s`, and the least recent beyond `keep_bytes`.

        `keep_bytes` is the cache's bound by default, and 0 removes all.
        """
        keep = self.most_bytes if keep_bytes is None else keep_bytes
        since = None if older_s is None else time.time_ns() - round(older_s * 1e9)
        kept, removed = [], []
        held = 0
        for file in sorted(self._files(clean=True), key=lambda each: (-each.used_ns, each.name)):
            fits = held + file.nbytes <= keep and (since is None or file.used_ns >= since)
            if not fits and _remove(file.path):
                removed.append(file.nbytes)
                keep = min(keep, held)  # what is older goes, too, whatever its size
            else:
                kept.append(file.nbytes)
                held += file.nbytes
        return Pruned(len(removed), sum(removed), len(kept), sum(kept))

    def _path(self, key: str) -> str:
        if not _KEY.fullmatch(key):
            raise ValueError(f"a key must be 64 hexadecimal digits, not {key!r}")
        return f"{self.folder}/{key[:2]}/{key[2:]}{_ENTRY}"

    def _fit(self) -> None:
        """Look at what the folder holds, and make room where it is more than it may be."""
        self._held, self._written = sum(file.nbytes for file in self._files(clean=True)), 0
        if self._held > self.most_bytes:
            self._held = self.prune(round(self.most_bytes * (1 - _UNSEEN))).kept_bytes

    def _files(self, clean: bool = False) -> Iterator[_File]:
        """Yield what is in the folder; `clean` removes what processes left that were killed. Links are left alone."""
        for shard in _scan(self.folder):
            if not (_SHARD.fullmatch(shard.name) and shard.is_dir(follow_symlinks=False)):
                continue
            for each in _scan(Path(shard.path)):
                try:
                    stat = each.stat(follow_symlinks=False)
                except OSError:
                    continue
                key = shard.name + each.name.removesuffix(_ENTRY)
                if each.name.endswith(_ENTRY) and _KEY.fullmatch(key) and each.is_file(follow_symlinks=False):
                    yield _File(each.path, key, stat.st_size, stat.st_mtime_ns)
                elif clean and each.name.endswith(_TEMPORARY) and time.time() - stat.st_mtime > _ABANDONED_S:
                    _remove(each.path)

    def _write(self, path: str, pieces: list[bytes]) -> None:
        """Write a file whole or not at all; the folder may have gone since it was last seen."""
        folder = os.path.dirname(path)  # noqa: PTH120 - a Path costs more than the rest
        temporary = f"{folder}/.{os.getpid()}.{os.urandom(6).hex()}{_TEMPORARY}"
        for last in (False, True):
            try:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                with suppress(FileExistsError):
                    os.mkdir(folder)  # noqa: PTH102
                if os.path.islink(folder):  # noqa: PTH114
                    raise OSError(None, f"{os.path.basename(folder)!r} must not be a link,")  # noqa: PTH119
                with open(temporary, "xb") as file:  # noqa: PTH123
                    file.writelines(pieces)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, path)  # noqa: PTH105
                return
            except FileNotFoundError:
                if last:
                    raise
            finally:
                _remove(temporary)

    def _warn(self, why: str) -> None:
        """Say, once, why what was found out is not kept."""
        if not self._warned:
            self._warned = True
            warnings.warn(f"nothing is kept in the cache: {why}.", KernbenchWarning, stacklevel=4)


@functools.cache
def _opened(kind: Any, folder: Path, most_bytes: int) -> Any:
    """Return one and the same cache for one folder, so that what is wrong with it is said once."""
    return kind(folder, most_bytes)


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _start(file: Any) -> bytes:
    """Return the first bytes of an entry, up to the end of its second line."""
    found: bytes = file.readline(_HEAD_BYTES)
    line: bytes = file.readline()
    return found + line


def _scan(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield what is in a folder; nothing where it is not there, or cannot be read."""
    try:
        with os.scandir(folder) as found:
            yield from sorted(found, key=lambda each: each.name)
    except OSError:
        return


def _remove(path: str) -> bool:
    """Remove a file; whether it is gone."""
    try:
        os.unlink(path)  # noqa: PTH108
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
