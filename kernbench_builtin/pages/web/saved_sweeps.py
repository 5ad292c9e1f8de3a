"""The sweeps below a folder; whoever knows how reads them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from kernbench_builtin.compare.saved_result import RESULT
from kernbench_core.errors import UsageError

if TYPE_CHECKING:
    from kernbench_builtin.pages.report import SweepPage

SweepReader: TypeAlias = Callable[[Path, Callable[[Path], str]], "SweepPage"]
"""Reads the folder of a sweep into its page; asks where the run that may be in a folder is shown, "" for nowhere."""
SWEEP: Final = "sweep.json"
POINTS: Final = "points"
#: How deep below the folder sweeps are looked for, and how many are shown.
_DEEPEST: Final = 6
_MOST: Final = 200


@attrs.frozen
class IndexedSweep:
    """A folder that looks like a sweep's: its path below the folder served, its points so far, when it was begun."""

    at: str
    folder: Path
    points: int
    written: datetime


def saved_sweeps(top: Path) -> list[IndexedSweep]:
    """Return the sweeps below a folder, the latest first; links are not followed."""
    found = [_saved(top, folder) for folder in islice(_folders(top), _MOST)]
    return sorted(found, key=lambda sweep: (sweep.written, sweep.at), reverse=True)


def _folders(top: Path) -> Iterator[Path]:
    for path, folders, files in os.walk(top):
        if SWEEP in files:
            yield Path(path)
            folders.clear()
        elif RESULT in files or len(Path(path).relative_to(top).parts) >= _DEEPEST:
            folders.clear()
        folders.sort()


def _saved(top: Path, folder: Path) -> IndexedSweep:
    at = folder.relative_to(top).as_posix()
    written = datetime.fromtimestamp((folder / SWEEP).lstat().st_mtime).astimezone()
    return IndexedSweep(at, folder, sum(1 for _ in _records(folder)), written)


def _records(folder: Path) -> Iterator[os.DirEntry[str]]:
    if (folder / POINTS).is_dir():
        with os.scandir(folder / POINTS) as entries:
            yield from (entry for entry in entries if entry.name.endswith(".json"))


def check_no_links_in_sweep(folder: Path) -> None:
    """Raise UsageError where a file of a sweep is a link, which may lead to what nobody means to show."""
    links = [folder / name for name in (SWEEP, POINTS) if (folder / name).is_symlink()]
    links += [Path(entry.path) for entry in _records(folder) if entry.is_symlink()]
    if links:
        raise UsageError(f"file {str(links[0])!r} must not be a link; put the file itself there.")
