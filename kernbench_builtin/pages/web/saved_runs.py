"""The runs below a folder, as far as an index shows them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from zipfile import is_zipfile

import attrs

from kernbench_builtin.compare.saved_result import RESULT, read_result
from kernbench_builtin.pages.report.run_page import script_kernels
from kernbench_builtin.pages.report.saved_runs import MACHINE, read_machine
from kernbench_builtin.pages.timeline import TIMELINE
from kernbench_builtin.pages.web.saved_sweeps import POINTS, SWEEP
from kernbench_core.errors import KernbenchError, UsageError

#: How deep below the folder runs are looked for, and how many are shown.
_DEEPEST: Final = 6
_MOST: Final = 2000


@attrs.frozen
class IndexedRun:
    """A folder that looks like a run's: its path below the folder served, when it was written, and what it says.

    `result` is None where it cannot be used; `fault` says why.
    """

    at: str
    folder: Path
    written: datetime
    result: Mapping[str, Any] | None
    fault: str = ""

    @property
    def kernels(self) -> str:
        """The kernels of a script, in words."""
        return "" if self.result is None else script_kernels(self.result)


def saved_runs(top: Path) -> list[IndexedRun]:
    """Return the runs below a folder, the latest first; links are not followed."""
    found = [_saved(top, folder) for _, folder in zip(range(_MOST), _folders(top), strict=False)]
    return sorted(found, key=lambda run: (run.written, run.at), reverse=True)


def _folders(top: Path) -> Iterator[Path]:
    """Yield the folders that hold a result, none of them inside of another."""
    for path, folders, files in os.walk(top):
        if RESULT in files:
            folders.clear()
            yield Path(path)
        elif SWEEP in files:
            folders[:] = [name for name in folders if name != POINTS]
        elif len(Path(path).relative_to(top).parts) >= _DEEPEST:
            folders.clear()
        folders.sort()


def _saved(top: Path, folder: Path) -> IndexedRun:
    at = folder.relative_to(top).as_posix()
    written = datetime.fromtimestamp((folder / RESULT).lstat().st_mtime).astimezone()
    try:
        check_no_links(folder)
        _check_machine(folder / MACHINE)
        timeline = folder / TIMELINE
        if timeline.exists() and not is_zipfile(timeline):
            raise UsageError(f"timeline {str(timeline)!r} is cut off or changed; run it again with --out.")
        return IndexedRun(at, folder, written, read_result(folder))
    except KernbenchError as error:
        return IndexedRun(at, folder, written, None, str(error))


def _check_machine(path: Path) -> None:
    """Raise UsageError where the file of a machine is damaged; one that has not changed is read once."""
    if path.exists():
        told = path.stat()
        fault = _machine_fault(path, told.st_mtime_ns, told.st_size)
        if fault:
            raise UsageError(fault)


@lru_cache(maxsize=_MOST)
def _machine_fault(path: Path, written: int, size: int) -> str:
    """Return what is wrong with the file of a machine, as it was `written` (ns) with so many bytes; "" for nothing."""
    try:
        read_machine(path.parent)
    except UsageError as error:
        return str(error)
    return ""


def check_no_links(folder: Path) -> None:
    """Raise UsageError where a file of a run is a link, which may lead to what nobody means to show."""
    for name in (RESULT, MACHINE, TIMELINE):
        if (folder / name).is_symlink():
            raise UsageError(f"file {str(folder / name)!r} must not be a link; put the file itself there.")
