"""Tie the life of a process to the one that started it: nothing that kernbench starts outlives kernbench."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def end_with(parent: int) -> None:
    """End this process when its parent, the process `parent`, has ended, however that came about.

    The kernel of Linux sees to it, also while this process never returns from C code; elsewhere nobody does. Nothing is
    flushed or cleaned up: whoever could have used it is gone.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before it was asked for
        os.kill(os.getpid(), signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of what the children of this process leave behind, where the system has that (Linux)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
