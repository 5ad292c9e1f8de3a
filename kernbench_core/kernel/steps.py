"""The path of commands that a kernel's time led through, noted as it runs: what limits it is read from there."""

from __future__ import annotations

from typing import Final, TypeAlias

from kernbench_core.callsite import CallSite

#: So long a path is added up.
_ADDED_AT: Final = 4096

PathKey: TypeAlias = tuple[str, int, int]
PathSums: TypeAlias = dict[PathKey, tuple[str, str, CallSite, float, int]]
"""Of each call of a kernel: its name, the kind of unit that serves it, its line, ns and how many commands."""


class PathStep:
    """One step of what a kernel's time led through: a command, from `begin` to `end` in ns; `before` led to it.

    It begins when the CPU of its PE sends it, or when the unit has completed the one before. What is between the end
    of `before` and that is time of the CPU. A long path is added up on its way, so that it does not grow with the run.
    `first` is when its first step began, which may be on another PE.
    """

    __slots__ = ("added", "before", "begin", "call", "end", "first", "length", "site", "unit")

    def __init__(
        self, before: PathStep | None, call: str, unit: str, site: CallSite, begin: float, end: float
    ) -> None:
        self.before = before
        self.call = call
        self.unit = unit
        self.site = site
        self.begin = begin
        self.end = end
        self.first: float = begin if before is None else before.first
        self.added: PathSums | None = None
        self.length: int = 1 if before is None else before.length + 1
        if self.length == _ADDED_AT:
            self.added, self.before, self.length = self.sums(), None, 1

    def sums(self) -> PathSums:
        """Return the times of the path until here, added up by call: ns, and how many commands there were.

        The rest of the time is the CPU's.
        """
        found: PathSums = {}
        step: PathStep | None = self
        while step is not None:
            if step.added is not None:
                for key, (call, unit, site, ns, times) in step.added.items():
                    _add(found, key, call, unit, site, ns, times)
                break
            key = step.call, id(step.site[0]), step.site[1]
            _add(found, key, step.call, step.unit, step.site, step.end - step.begin, 1)
            step = step.before
        return found


def _add(sums: PathSums, key: PathKey, call: str, unit: str, site: CallSite, ns: float, times: int) -> None:
    known = sums.get(key)
    if known is not None:
        ns, times = ns + known[3], times + known[4]
    sums[key] = call, unit, site, ns, times
