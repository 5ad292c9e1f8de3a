"""Tie the life of a process to the one that started it: nothing that kernbench starts outlives kernbench."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

_LOOK_S = 0.5
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def end_with(parent: int) -> None:
    """End this process when its parent, the process `parent`, has ended, however that came about.

    On Linux the kernel sees to it, also while this process never returns from C code; elsewhere a thread looks twice a
    second. Nothing is flushed or cleaned up: whoever could have used it is gone.
    """
    if not _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL):
        threading.Thread(target=_watch, args=(parent,), daemon=True, name="kernbench-lifeline").start()
    if os.getppid() != parent:  # it ended before it was asked for
        os.kill(os.getpid(), signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of what the children of this process leave behind, where the system has that (Linux)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> bool:
    """Ask Linux for something that concerns this process; False where that cannot be asked for."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    try:
        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os.kill(os.getpid(), signal.SIGKILL)
