"""What ends a process that no interrupt ends: code in C that never returns.

A thread of the interpreter that runs no Python (`faulthandler`) writes where the process is, and ends it; the process
that started it says so. Only processes that have such a parent are ended so: those of a pool, and the child in which a
command runs where --timeout is given.
"""

from __future__ import annotations

import math
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from kernbench_core.errors import KernelError, LimitError
from kernbench_core.package import OURS, is_pythons

#: How much later than the limit a process is ended in which nothing can be raised, in s.
GRACE_S = 2.0
_HEAD = "Timeout ("
_ENDLESS = "in code that no interrupt ends"
_FRAME = re.compile(r'  File "(.*)", line (\d+) in ')
#: Exit codes of a command that a limit, Ctrl-C or SIGTERM ended.
_CUT_SHORT: Final = frozenset({LimitError.exit_code, 128 + signal.SIGINT, 128 + signal.SIGTERM})
_ROOT = Path(__file__).parents[2]
#: How our own files begin.
_OURS = tuple(f"{_ROOT / begin.replace('.', os.sep)}{os.sep}" for begin in OURS)
_PR_SET_PDEATHSIG: Final = 1
#: What a process that has a child for its command hands on to that.
_HANDED_ON: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGTSTP)

# Of the process, as the watch of faulthandler is: where it writes, and when this process is ended.
_report: int | None = None
_deadline = math.inf


def end_with(parent: int) -> None:
    """End this process when its parent, the process `parent`, has ended, however that came about.

    The kernel of Linux sees to it, also while this process never returns from C code; elsewhere nobody does. Nothing is
    flushed or cleaned up: whoever could have used it is gone.
    """
    if sys.platform.startswith("linux"):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before it was asked for
        os.kill(os.getpid(), signal.SIGKILL)


def report_to(file: int) -> None:
    """Have this process ended when a limit on wall time does not end it, and where it was written to `file`."""
    global _report, _deadline
    _report, _deadline = file, math.inf


def watch_until(deadline: float) -> float:
    """End this process at a time of `time.monotonic`, inf for never; return when it would have been until now.

    Nothing ends a process of which nobody would tell why.
    """
    global _deadline
    before, _deadline = _deadline, deadline
    if _report is not None:
        import faulthandler

        if deadline == math.inf:
            faulthandler.cancel_dump_traceback_later()
        else:
            faulthandler.dump_traceback_later(max(deadline - time.monotonic(), 0.001), exit=True, file=_report)
    return before


def watch_for(limit_s: float) -> float:
    """End this process `GRACE_S` behind a limit that begins now, or when it is ended anyway; return that time."""
    return watch_until(min(_deadline, time.monotonic() + limit_s + GRACE_S))


def supervised(body: Callable[[], int], limit_s: float) -> int:
    """Call `body` in a child of this process, with a process group of its own; return its result there and here.

    `limit_s` is the limit on wall time that the body keeps to. Signals sent to this process reach the child, which has
    the terminal when it reads from it. Where a limit or a signal ends the child or what it does, the group is ended.

    Raises:
        LimitError: the limit was reached where nothing could be raised in the child.
        KernelError: a signal ended the child; its exit code is that of a shell.
    """
    import tempfile

    with tempfile.TemporaryFile() as report:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDED_ON)  # what comes until it can be handed on waits
        parent, child = os.getpid(), os.fork()
        with suppress(OSError):
            os.setpgid(child, child)  # by both: neither can wait for the other
        if child == 0:
            end_with(parent)
            report_to(os.dup(report.fileno()))
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            return body()
        _hand_signals_on(child)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        code = os.waitstatus_to_exitcode(_wait(child))
        report.seek(0)
        late = ended_by_limit(report.read().decode(errors="replace"), limit_s)
    if late is not None or code < 0 or code in _CUT_SHORT:
        with suppress(OSError):  # nobody is left
            os.killpg(child, signal.SIGKILL)
    if late is not None:
        raise late
    if code < 0:
        raise _killed(-code)
    return code


def _hand_signals_on(child: int) -> None:
    """Have what is sent to this process reach the child: Ctrl-C and Ctrl-Z its group, as those of a terminal would."""

    def hand_on(number: int, frame: object) -> None:
        with suppress(OSError):  # it has just ended
            (os.kill if number == signal.SIGTERM else os.killpg)(child, number)

    for number in _HANDED_ON:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, hand_on)


def _wait(child: int) -> int:
    """Wait for the child, and return its exit status.

    It has the terminal once it reads from it. Where Ctrl-Z stops it, this process stops for the shell, too.
    """
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # whoever takes the terminal back does not have it
    while True:
        _, status = os.waitpid(child, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            _hand_terminal(child, os.getpgrp())
            return status
        asks = os.WSTOPSIG(status) in (signal.SIGTTIN, signal.SIGTTOU)
        if not (asks and _hand_terminal(os.getpgrp(), child)):
            os.kill(os.getpid(), signal.SIGSTOP)
        os.killpg(child, signal.SIGCONT)


def _hand_terminal(owner: int, group: int) -> bool:
    """Have a process group be in the foreground of the terminal if its owner is; return whether that is so."""
    with suppress(OSError):
        terminal = os.open("/dev/tty", os.O_RDWR)
        try:
            if os.tcgetpgrp(terminal) == owner:
                os.tcsetpgrp(terminal, group)
                return True
        finally:
            os.close(terminal)
    return False


def _killed(number: int) -> KernelError:
    """Return the error of a child that a signal ended, with the exit code that a shell has for it."""
    who = "by the system where memory is exhausted" if number == signal.SIGKILL else "by a fault in its C code"
    killed = KernelError(
        f"the process of the run was killed by signal {number} ({signal.strsignal(number)}): by the program in it, by "
        f"somebody else, or {who}."
    )
    killed.exit_code = 128 + number
    return killed


def ended_by_limit(report: str, limit_s: float) -> LimitError | None:
    """Return the error that a report tells of, of a process with this limit; None where it ended otherwise."""
    if _HEAD not in report:
        return None
    line = _line_in(report)
    return limit_error(limit_s, f" in {line}" if line else "")


def limit_error(limit_s: float, line: str) -> LimitError:
    """Return the error of a process that was at `line` ("" where that is not known) when its limit came."""
    return LimitError(
        f"the run reached its limit of {limit_s:g} s of wall time{line}, {_ENDLESS}; "
        "raise --timeout if it is only long."
    )


def _line_in(report: str) -> str | None:
    """Return the innermost line of somebody else's code that the main thread was in."""
    frames = _FRAME.findall(report.rpartition("Thread ")[2])  # the main thread is written last
    users = (f"{file}:{line}" for file, line in frames if not (file.startswith(_OURS) or is_pythons(file)))
    return next(users, None)
