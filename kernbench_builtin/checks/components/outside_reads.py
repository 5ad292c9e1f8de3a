"""Whether what a plug-in does depends on more than parameters and messages: the clock, the environment, chance."""

from __future__ import annotations

import datetime
import os
import random
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

#: Functions that Python does not write itself, by the module that a profiler sees them in, and what they read.
_BUILT_IN: Final = {
    "the clock": {*(getattr(time, name) for name in dir(time) if not name.startswith("_")
                    and callable(getattr(time, name)) and name not in ("sleep", "struct_time", "get_clock_info"))},
    "the folder that the process is in": {os.getcwd, os.getcwdb},
    "chance": {os.urandom},
    "the machine": {os.cpu_count, os.uname, os.getpid, os.getppid, os.getloadavg},
}  # fmt: skip
#: Methods of classes, which are another object each time they are asked for: by class and name.
_OF_CLASSES: Final[dict[tuple[object, str], str]] = {
    (kind, name): "the clock" for kind in (datetime.datetime, datetime.date) for name in ("now", "utcnow", "today")
}
#: Modules that only hand on what their caller asks for.
_HANDS_ON: Final = frozenset({"os", "_collections_abc", "pathlib", "pathlib._local", "posixpath", "random", "platform"})


class OutsideReads:
    """Note, in `found`, what functions of `packages` read besides what they are given, each once, in their order.

    Each is a package, what it read, and the line, as `file.py:LINE`. What other packages read for them, in numpy or
    in logging say, does not count.
    """

    def __init__(self, packages: Iterable[str]) -> None:
        self.packages = frozenset(packages)
        self.found: dict[tuple[str, str, str], None] = {}

    def of(self, package: str) -> list[str]:
        """Return what functions of a package read, a clause each."""
        return [f"{line} reads {what}" for one, what, line in self.found if one == package]

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Look on while the block runs, at all that this thread does."""
        if not self.packages:
            yield
            return
        before = sys.getprofile()
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            sys.setprofile(before)

    def _profile(self, frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call":
            if what := _read_by(called):
                self._note(what, frame)
        elif event == "call" and frame.f_back is not None:
            own = frame.f_locals.get("self")
            if own is os.environ or own is os.environb:
                self._note("the environment", frame.f_back)
            elif own is random._inst:
                self._note("chance", frame.f_back)

    def _note(self, what: str, frame: FrameType | None) -> None:
        while frame is not None and frame.f_globals.get("__name__") in _HANDS_ON:
            frame = frame.f_back
        if frame is None:
            return
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package in self.packages:
            self.found.setdefault((package, what, f"{frame.f_code.co_filename}:{frame.f_lineno}"))


def _read_by(called: Any) -> str | None:
    """Return what a built-in function reads; None for nothing that is outside."""
    owner = getattr(called, "__self__", None)
    if owner is random._inst:
        return "chance"
    if isinstance(owner, type) and (what := _OF_CLASSES.get((owner, called.__name__))):
        return what
    try:
        return next((what for what, functions in _BUILT_IN.items() if called in functions), None)
    except TypeError:  # what has no hash is none of them
        return None
