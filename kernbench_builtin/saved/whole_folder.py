"""Write a folder whole or not at all, beside what else is in it, and through no link."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from kernbench_core.errors import UsageError
from kernbench_core.process.whole_files import folder_above, naming, temporary_in


@contextmanager
def whole_folder(path: Path, replaced: Collection[str] = ()) -> Iterator[Path]:
    """Give an empty folder; when the block ends well, its files are those of `path`, beside what else is there.

    Files of `path` named in `replaced`, relative to it, go; UsageError where the new ones would replace others, and
    where a link stands on the way to one of either. Folders above `path` that are not there are made. When the block
    raises, `path` is as it was before.
    """
    new = temporary_in(path if path.is_dir() else folder_above(f"folder {str(path)!r}", path))
    try:
        new.mkdir()
        yield new
        if path.exists():
            _merge(new, path, replaced)
        else:
            _put(new, path)
    except OSError as error:
        raise naming(error, path) from None
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
