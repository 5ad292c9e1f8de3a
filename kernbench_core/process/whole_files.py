"""Write files whole or not at all, with bytes that depend on nothing but their content."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
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
    temporary = temporary_in(path.parent)
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
        raise naming(error, path) from None
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
def same_folder() -> Iterator[Path]:
    """Give the current folder, which is that again when the block ends: a bench may change to another one."""
    try:
        here = Path.cwd()
    except FileNotFoundError:
        raise UsageError("the current folder must exist; change to another one.") from None
    try:
        yield here
    finally:
        with suppress(OSError):
            os.chdir(here)


def naming(error: OSError, path: Path) -> OSError:
    """Return an error that names what was to be written, not a temporary name."""
    return type(error)(error.errno, error.strerror, str(path))


def temporary_in(folder: Path) -> Path:
    """Name something new in a folder, short enough wherever a file of any name fits."""
    return folder / f".kernbench.{os.urandom(6).hex()}.tmp"
