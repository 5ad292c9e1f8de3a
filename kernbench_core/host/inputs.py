"""Files that a bench reads while it runs, kept so that they are there when it runs again.

A file is named relative to the folder of the bench, else to the folder in which the run began; one elsewhere by its
own name and a hash of its folder. So one name means the same file here and in the folder of a run.
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

    `folders` are those that names start from. In a run that is made again, `recorded` are the files to read in place of
    the original ones, by name.
    """

    folders: tuple[Path, ...]
    recorded: Mapping[str, Path] = attrs.field(factory=dict)
    kept: dict[str, bytes] = attrs.field(factory=dict)
    asked: dict[str, str] = attrs.field(factory=dict)

    def read(self, path: str | Path) -> Path:
        """Keep a file, if it can be read, and return where to read it."""
        full = Path(os.path.abspath(path))  # noqa: PTH100 - a link keeps its own name
        name = self._name(full)
        place = self.recorded.get(name, Path(path))
        self.asked.setdefault(name, os.path.abspath(place))  # noqa: PTH100
        if name not in self.kept:
            with suppress(OSError):
                self.kept[name] = place.read_bytes()
        return place

    def _name(self, full: Path) -> str:
        for folder in self.folders:
            if full.is_relative_to(folder):
                return full.relative_to(folder).as_posix()
        return f"{hashlib.sha256(str(full.parent).encode()).hexdigest()[:8]}/{full.name}"
