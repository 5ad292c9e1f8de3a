"""The kernel lines of a timeline: where they are, and what they say."""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from pathlib import PurePath
from typing import Final

import numpy as np

from kernbench_builtin.pages.timeline.columns import Indices
from kernbench_core.callsite import CallSite, line_number

_MOST: Final = 100
AT_THE_END: Final = "end of the program"
"""What a program waits at when it has returned and its commands have not."""


class LineTable:
    """Number the lines of call sites, several of which may be on one line; `lines` and `sources` have their text."""

    def __init__(self, sites: Iterable[CallSite]) -> None:
        found: dict[str, int] = {}
        self.sources: list[str] = []
        numbers = []
        for site in sites:
            file, line = site[0].co_filename, line_number(site)
            number = found.setdefault(f"{file}:{line}", len(found))
            if number == len(self.sources):
                self.sources.append(_shown(file, line))
            numbers.append(number)
        self.lines = tuple(found)
        #: The line of each site, and -1 for no site at all, which is numbered -1.
        self.of_site: Indices = np.array([*numbers, -1], np.int64)


def _shown(file: str, line: int) -> str:
    """Return what a line says, or where it is when its file cannot be read; long ones are cut."""
    text = linecache.getline(file, line).strip() or f"{PurePath(file).name}:{line}"
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"
