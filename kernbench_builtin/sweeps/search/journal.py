"""The file in which Optuna's journal storage keeps a study, in its own form, a line for each change.

What is changed in one step is written at once: on the disk, or cut off when the journal is opened next.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from optuna.storages.journal import BaseJournalBackend

#: What the last line of a trial that was asked for has among its attributes.
ASKED = "batch"


class SearchJournal(BaseJournalBackend):
    """Keeps a journal in a file that nobody else writes meanwhile.

    Raise ValueError where the file holds something else, and OSError where it cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._logs = _mended(path)
        self._waiting: list[str] = []
        self._steps = 0

    def read_logs(self, log_number_from: int) -> Iterable[dict[str, Any]]:
        """Return the changes from that number on."""
        return self._logs[log_number_from:]

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Take changes; they are in the file when the step ends, and without one at once."""
        with self.step():
            lines = [json.dumps(log, separators=(",", ":")) for log in logs]
            self._logs += map(json.loads, lines)
            self._waiting += lines

    @contextmanager
    def step(self) -> Iterator[None]:
        """Write what is changed in the block when the outermost of such blocks ends."""
        self._steps += 1
        try:
            yield
        finally:
            self._steps -= 1
            if not self._steps:
                self._write()

    def _write(self) -> None:
        if not self._waiting:
            return
        data = "".join(f"{line}\n" for line in self._waiting).encode()
        with self._path.open("ab") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        self._waiting.clear()


def _mended(path: Path) -> list[dict[str, Any]]:
    """Return the changes in a file; cut off half a line at its end, and a trial that was not asked for to its end."""
    if not path.exists():
        return []
    whole = path.read_bytes()
    lines = whole[: whole.rfind(b"\n") + 1].splitlines(keepends=True)
    logs = [json.loads(line) for line in lines]
    if not all(isinstance(log, dict) for log in logs):
        raise ValueError("a line of a journal must be an object")
    for at in range(len(logs) - 1, -1, -1):
        if ASKED in (logs[at].get("user_attr") or ()):
            break
        if "datetime_start" in logs[at]:
            del logs[at:], lines[at:]
            break
    if sum(map(len, lines)) < len(whole):
        with path.open("r+b") as file:
            file.truncate(sum(map(len, lines)))
            os.fsync(file.fileno())
    return logs
