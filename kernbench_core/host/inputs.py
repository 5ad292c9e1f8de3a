"""Files that a bench reads while it runs, kept so that they are there when it runs again.

A file is named relative to the folder of the bench, else to that in which the run began (`a.csv.2` where both have an
`a.csv`); one elsewhere by its own name and a hash of its folder. So a name means one file, also in the folder of a run.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import attrs


@attrs.define
class Inputs:
    """The files that one run reads: `kept` are bytes by name, `asked` the paths of all that it asked for.

    Names start from `folders`. A run that is made again reads the files `recorded`, by name, in place of its own.
    """

    folders: tuple[Path, ...]
    recorded: Mapping[str, Path] = attrs.field(factory=dict)
    kept: dict[str, bytes] = attrs.field(factory=dict)
    asked: dict[str, str] = attrs.field(factory=dict)

    def read(self, path: str | Path) -> Path:
        """Keep a file, if it can be read, and return where to read it."""
        full = os.path.abspath(path)  # noqa: PTH100 - a link keeps its own name
        first = name = self._name(Path(full))
        while self.asked.setdefault(name, full) != full:
            name = f"{first}.{int(name[len(first) + 1 :] or 1) + 1}"
        place = self.recorded.get(name) or self.recorded.get(first, Path(path))
        if name not in self.kept:
            with suppress(OSError):
                self.kept[name] = place.read_bytes()
        return place

    def _name(self, full: Path) -> str:
        for folder in self.folders:
            if full.is_relative_to(folder):
                return full.relative_to(folder).as_posix()
        return f"{hashlib.sha256(str(full.parent).encode()).hexdigest()[:8]}/{full.name}"
