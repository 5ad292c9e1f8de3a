"""The line that tells how far a sweep is: points, failures, and the time that is left."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from kernbench_core.runs.progress import ProgressDisplay


class SweepProgress(ProgressDisplay):
    """Counts the points that are over; those that were recorded before take no time."""

    def __init__(self, title: str, of: int, *, at_most: bool = False, enabled: bool = True) -> None:
        super().__init__(title, enabled=enabled, rows=True)
        self._words = "at most " if at_most else ""
        self._of, self._before, self._done, self._failed = of, 0, 0, 0
        self._since = time.monotonic()

    def began(self) -> None:
        """Take note that points begin to run."""
        self._since = time.monotonic()

    def known(self, before: int) -> None:
        """Take note that so many more points were over before."""
        self._before += before

    def told(self, record: Mapping[str, Any]) -> None:
        """Take note of one more point."""
        self._done += 1
        self._failed += record["status"] != "ok"

    @property
    def over(self) -> int:
        """How many points are over."""
        return self._before + self._done

    def forms(self) -> tuple[str, ...]:
        """Return what stands behind the title, the longest form first."""
        over = self.over
        took_s = time.monotonic() - self._since
        count = f"{over} of {self._words}{self._of} points"
        left_s = took_s / self._done * (self._of - over) if self._done else None
        left = "" if left_s is None else f"  {over / self._of:.0%}, {_clock(left_s)} left"
        failed = f"  {self._failed} failed" if self._failed else ""
        return (f"{count}{left}{failed}  {_clock(took_s)}", f"{count}{left}", count, f"{over}/{self._of}")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
