"""What ends a process whose main thread never returns from C code: a big power, a regular expression that explodes.

No line of Python runs in it any more, so nothing in it can raise. A thread of the interpreter that needs none
(`faulthandler`) then writes where it was, and ends the process; another process, which started this one, tells what
happened. Only processes that have such another one are ended so: those of a pool, and the command line when it is given
a limit.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernbench_core.errors import LimitError
from kernbench_core.lifeline import adopt_orphans, end_with

#: How much later than the limit a process is ended in which nothing can be raised, in s.
GRACE_S = 2.0
_PATIENCE_S = 2.0
_LOOK_S = 0.05
_FROM_TERMINAL = 0x80  # SI_KERNEL: the whole foreground group has it already
_HEAD = "Timeout ("
_FRAME = re.compile(r'  File "(.*)", line (\d+) in ')
_OURS = (str(Path(__file__).parent) + os.sep, str(Path(os.__file__).parent) + os.sep)

# Of the process, as the watch of faulthandler and the process's end are.
_report: int | None = None


def report_to(file: int) -> None:
    """Have this process ended when a limit on wall time does not end it, and where it was written to `file`."""
    global _report
    _report = file


def arm(timeout_s: float) -> None:
    """Begin a limit: `GRACE_S` after it this process ends, unless `disarm` comes first or nobody would tell why."""
    if _report is not None:
        import faulthandler

        faulthandler.dump_traceback_later(timeout_s + GRACE_S, exit=True, file=_report)


def disarm() -> None:
    """End the limit that `arm` began."""
    if _report is not None:
        import faulthandler

        faulthandler.cancel_dump_traceback_later()


def ended_by_limit(report: str, limit_s: float) -> LimitError | None:
    """Return the error that a report tells of, of a process with this limit; None where it ended otherwise."""
    if _HEAD not in report:
        return None
    frames = _FRAME.findall(report.rpartition("Thread ")[2])  # the main thread is written last
    line = next((f"{file}:{line}" for file, line in frames if not file.startswith(_OURS)), None)
    where = f" in {line}" if line else ""
    return LimitError(
        f"the run reached its limit of {limit_s:g} s of wall time{where}, in code that never returned to Python; raise "
        "--timeout if it is only long."
    )


def supervised(body: Callable[[], int], limit_s: float) -> int:
    """Call `body` in a child of this process, and return its result there, and here the child's exit code.

    `limit_s` is the limit on wall time that the body keeps to, for the sentence.

    Both are in one process group with one terminal, and signals sent to this process reach the child. Where the child
    is ended for its limit, nothing that it started is left.

    Raises:
        LimitError: the child's limit was reached in code that never returned to Python.
    """
    import tempfile

    forwarded = {signal.SIGINT, signal.SIGTERM}
    report = tempfile.TemporaryFile()  # noqa: SIM115 - both processes keep it
    parent = os.getpid()
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, {*forwarded, signal.SIGCHLD})
    signal.signal(signal.SIGCHLD, lambda *_: None)  # ignored it would not be waited for
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)
        end_with(parent)
        report_to(report.fileno())
        return body()
    adopt_orphans()
    status = _wait(child, {*forwarded, signal.SIGCHLD})
    report.seek(0)
    found = ended_by_limit(report.read().decode(errors="replace"), limit_s)
    if found is not None:
        _end_orphans()
        raise found
    if os.WIFSIGNALED(status):
        _end_likewise(os.WTERMSIG(status))
    return os.waitstatus_to_exitcode(status)


def _wait(child: int, signals: set[signal.Signals]) -> int:
    """Wait for the child, handing signals on that reached this process alone; return its exit status."""
    while True:
        number, sender = _next_signal(signals)
        if number == signal.SIGCHLD:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return status
        elif sender != _FROM_TERMINAL:
            os.kill(child, number)


def _next_signal(signals: set[signal.Signals]) -> tuple[int, int]:
    """Wait for a signal; return its number and how it was sent."""
    if sys.platform.startswith("linux"):
        found = signal.sigwaitinfo(signals)
        return found.si_signo, found.si_code
    number: int = signal.sigwait(signals)
    return number, _FROM_TERMINAL if number == signal.SIGINT else 0


def _end_orphans() -> None:
    """Wait a little for what the child had started, and end what is left."""
    deadline = time.monotonic() + _PATIENCE_S
    while _children() and time.monotonic() < deadline:
        _reap()
        time.sleep(_LOOK_S)
    for _ in range(100):  # ending one may bring its own children here
        left = _children()
        if not left:
            return
        for pid in left:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _children() -> list[int]:
    """Return the processes whose parent is this one, where that can be asked."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def _end_likewise(number: int) -> None:
    """End this process by a signal, as the child was ended."""
    handled: Any = {number}
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, handled)
    os.kill(os.getpid(), number)
