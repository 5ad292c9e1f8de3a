"""Write files and folders whole or not at all, with bytes that depend on nothing but their content."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path, PurePosixPath
from typing import IO, Final, cast

from kernbench_core.errors import UsageError

#: Letters of a path: no system takes more.
LONGEST_PATH: Final = 4096


def check_file(what: str, path: Path, suffix: str = "") -> Path:
    """Return the absolute path that a file can be written to, of what a link points to; raise UsageError otherwise.

    `what` is how a sentence begins: "trace file". It must end in `suffix`. Folders above it need not be there.
    Relative paths keep their meaning when the current folder changes.
    """
    if not path.name.lower().endswith(suffix):
        raise UsageError(f"{what} {str(path)!r} must end in {suffix}; give such a name.")
    target = Path(os.path.realpath(path))
    for each in (path, target):
        above = folder_above(f"{what} {str(path)!r}", each)
    if (target.exists() and not target.is_file()) or not os.access(above, os.W_OK | os.X_OK):
        raise UsageError(f"{what} {str(path)!r} must be a file in a folder that can be written; give another one.")
    return target


def is_file(path: Path) -> bool:
    """Whether there is a file; none has a longer path than systems take."""
    return len(str(path)) <= LONGEST_PATH and path.is_file()


def folder_above(what: str, path: Path) -> Path:
    """Return the nearest folder above `path` that exists; raise UsageError, beginning with `what`, for a file there."""
    there = next((folder for folder in path.parents if folder.exists()), Path())
    if not there.is_dir():
        raise UsageError(f"{what} must be in a folder, and {str(there)!r} is none; give another one.")
    return there


@contextmanager
def whole_file(path: Path, *, compress: bool = False) -> Iterator[IO[bytes]]:
    """Open a temporary file beside `path` for bytes, and rename it to `path` when the block ends well.

    Folders above `path` that are not there are made. When the block raises, `path` is as it was before. `compress`
    writes gzip without name and time, so that equal content gives equal bytes. Raise UsageError when the folder of
    `path` cannot be made or written.
    """
    temporary = _temporary(path.parent)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = temporary.open("xb")
    except OSError as error:
        raise UsageError(f"file {str(path)!r} must be in a folder that can be written: {error.strerror}.") from None
    try:
        with raw, _packed(raw) if compress else nullcontext(raw) as out:
            yield out
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    except OSError as error:
        raise _named(error, path) from None
    finally:
        temporary.unlink(missing_ok=True)


def _packed(raw: IO[bytes]) -> AbstractContextManager[IO[bytes]]:
    import gzip

    return cast("AbstractContextManager[IO[bytes]]", gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0))


def write_text(path: Path, text: str) -> None:
    """Write `text` and a final newline to `path` as UTF-8, whole or not at all."""
    with whole_file(path) as out:
        out.write(text.encode() + b"\n")


@contextmanager
def whole_folder(path: Path, replaced: Collection[str] = ()) -> Iterator[Path]:
    """Give an empty folder; when the block ends well, its files are those of `path`, beside what else is there.

    Files of `path` named in `replaced`, relative to it, go; UsageError where the new ones would replace others, and
    where a link stands on the way to one of either. Folders above `path` that are not there are made. When the block
    raises, `path` is as it was before.
    """
    new = _temporary(path if path.is_dir() else folder_above(f"folder {str(path)!r}", path))
    try:
        new.mkdir()
        yield new
        if path.exists():
            _merge(new, path, replaced)
        else:
            _put(new, path)
    except OSError as error:
        raise _named(error, path) from None
    finally:
        shutil.rmtree(new, ignore_errors=True)


def files_below(folder: Path) -> list[str]:
    """Return the files in a folder and below, relative to it and in order; a link is a file."""
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()
    )


def link_on_the_way(folder: Path, name: str) -> Path | None:
    """Return the first link on the way from a folder to `name` below it, which may be one itself; None without one."""
    at = folder
    for part in PurePosixPath(name).parts:
        at /= part
        if at.is_symlink():
            return at
    return None


def _named(error: OSError, path: Path) -> OSError:
    """Return an error that names what was to be written, not a temporary name."""
    return type(error)(error.errno, error.strerror, str(path))


def _put(new: Path, path: Path) -> None:
    """Move a folder to `path`, with the folders above that."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new.rename(path)


def _merge(new: Path, path: Path, replaced: Collection[str]) -> None:
    """Move the files of `new` into `path` in place of those that are `replaced`; undo it when that fails."""
    names = files_below(new)
    for name in (*names, *sorted(replaced)):
        link = link_on_the_way(path, name)
        if link is not None:
            raise UsageError(f"{str(link)!r} must not be a link, as a file would be replaced through it; remove it.")
    for name in names:
        if name not in replaced and os.path.lexists(path / name):
            raise UsageError(f"{str(path / name)!r} must not be there, as no run wrote it; move it away.")
    old = new / "replaced"
    while old.name in names:
        old = old.with_name(f"{old.name}_")
    moves = [(path / name, old / name) for name in replaced if os.path.lexists(path / name)]
    moves += [(new / name, path / name) for name in names]
    done = []
    try:
        for source, target in moves:
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)
            done.append((source, target))
    except BaseException:
        for source, target in reversed(done):
            target.rename(source)
        raise
    for name in replaced:
        _remove_empty((path / name).parent, path)


def _remove_empty(folder: Path, top: Path) -> None:
    """Remove a folder below `top` and those above it as far as nothing is in them."""
    while folder != top and top in folder.parents and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def _temporary(folder: Path) -> Path:
    """Name something new in a folder, short enough wherever a file of any name fits."""
    return folder / f".kernbench.{os.urandom(6).hex()}.tmp"
