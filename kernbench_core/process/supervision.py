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

from kernbench_core.errors import KernbenchError, KernelError, LimitError
from kernbench_core.process.lifeline import adopt_orphans, end_with

#: How much later than the limit a process is ended in which nothing can be raised, in s.
GRACE_S = 2.0
_PATIENCE_S = 2.0
#: How long a process may take from the end of its command to its own.
_END_S = 5.0
#: What it reports at the end of its command.
_DONE, _VERDICT, _RAISED = b"\nended with %d\n", re.compile(rb"\nended with (\d+)\n"), b"\nraised\n"
_LOOK_S = 0.05
_FROM_TERMINAL = 0x80  # SI_KERNEL: the whole foreground group has it already
_HEAD = "Timeout ("
_FRAME = re.compile(r'  File "(.*)", line (\d+) in ')
#: Exit codes of a command that a limit, Ctrl-C or SIGTERM ended.
_CUT_SHORT = frozenset({LimitError.exit_code, 128 + signal.SIGINT, 128 + signal.SIGTERM})
_OURS = (str(Path(__file__).parents[1]) + os.sep, str(Path(os.__file__).parent) + os.sep)

# Of the process, as the watch of faulthandler and the process's end are.
_report: int | None = None


def report_to(file: int) -> None:
    """Have this process ended when a limit on wall time does not end it, and where it was written to `file`."""
    global _report
    _report = file


def _forget() -> None:
    """Leave the watch to the process that it watches: a fork has no thread of it, and would wait for that for ever."""
    global _report
    _report = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def arm(timeout_s: float) -> None:
    """Begin a limit: `GRACE_S` after it this process ends, unless `disarm` comes first or nobody would tell why."""
    _arm(timeout_s + GRACE_S)


def _arm(wait_s: float) -> None:
    if _report is not None:
        import faulthandler

        faulthandler.dump_traceback_later(wait_s, exit=True, file=_report)


def disarm() -> None:
    """End the limit that `arm` began."""
    if _report is not None:
        import faulthandler

        faulthandler.cancel_dump_traceback_later()


def ended_by_limit(report: str, limit_s: float) -> LimitError | None:
    """Return the error that a report tells of, of a process with this limit; None where it ended otherwise."""
    if _HEAD not in report:
        return None
    line = _line_in(report)
    where = f" in {line}" if line else ""
    return LimitError(
        f"the run reached its limit of {limit_s:g} s of wall time{where}, in code that never returned to Python; raise "
        "--timeout if it is only long."
    )


def _line_in(report: str) -> str | None:
    """Return the innermost line of somebody else's code that the main thread was in."""
    frames = _FRAME.findall(report.rpartition("Thread ")[2])  # the main thread is written last
    return next((f"{file}:{line}" for file, line in frames if not file.startswith(_OURS)), None)


class KilledError(KernbenchError):
    """A signal ended the process of a run; the exit code is that of a shell for it."""

    def __init__(self, number: int, done: bool) -> None:
        when = "after" if done else "before"
        who = "by the system where memory is exhausted" if number == signal.SIGKILL else "by a fault in its C code"
        name = next((known.name for known in signal.Signals if known == number), "of real time")
        super().__init__(
            f"the process of the run was killed by signal {number} ({name}) {when} the command "
            f"had come to its end: by the program in it, by somebody else, or {who}."
        )
        self.number = number
        self.exit_code = 128 + number


def supervised(body: Callable[[], int], limit_s: float, warn: Callable[[str], None]) -> int:
    """Call `body` in a child of this process, and return its result there and here.

    `limit_s` is the limit on wall time that the body keeps to, for the sentence.

    Both are in one process group with one terminal, and signals sent to this process reach the child. Where a limit or
    a signal ends the child or what it does, or it does not come to its end behind the body, nothing that it started is
    left. What it leaves at an end of its own is left alone.

    Raises:
        LimitError: the child's limit was reached in code that never returned to Python.
        KilledError: a signal ended the child; whoever has told of it calls `end_likewise`.
        KernelError: the child was ended by the program in it.
    """
    import tempfile

    forwarded = {signal.SIGINT, signal.SIGTERM}
    before = frozenset(_children())
    report = tempfile.TemporaryFile()  # noqa: SIM115 - both processes keep it
    parent = os.getpid()
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, {*forwarded, signal.SIGCHLD})
    signal.signal(signal.SIGCHLD, lambda *_: None)  # ignored it would not be waited for
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)
        end_with(parent)
        report_to(os.dup(report.fileno()))  # open until the process ends
        try:
            code = body()
        except BaseException:
            os.write(report.fileno(), _RAISED)
            raise
        os.write(report.fileno(), _DONE % code)
        _arm(_END_S)  # for what it runs at its very end
        return code
    adopt_orphans()
    status = _wait(child, {*forwarded, signal.SIGCHLD})
    report.seek(0)
    told = report.read()
    done = _VERDICT.search(told)
    if _HEAD.encode() in told or os.WIFSIGNALED(status) or (done is not None and int(done[1]) in _CUT_SHORT):
        _end_orphans(before)
    return _verdict(told, status, limit_s, warn)


def _verdict(report: bytes, status: int, limit_s: float, warn: Callable[[str], None]) -> int:
    """Return the exit code of a child that left this report and this status; raise what `supervised` does."""
    text = report.decode(errors="replace")
    done = _VERDICT.search(report)
    if done is not None and _HEAD in text:
        line = _line_in(text)
        if line is not None:
            warn(
                f"the program was still in {line} {_END_S:g} s after the end, and ended with the command; let what it "
                "registers with atexit, and what its objects do in __del__, come to an end."
            )
    elif (found := ended_by_limit(text, limit_s)) is not None:
        raise found
    elif os.WIFSIGNALED(status):
        raise KilledError(os.WTERMSIG(status), done is not None)
    if done is not None:
        return int(done[1])
    code = os.waitstatus_to_exitcode(status)
    if report.endswith(_RAISED):
        return code
    raise KernelError(
        f"the program ended the process with exit code {code} before the command had come to its end; return or raise "
        "instead of os._exit."
    )


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


def _end_orphans(others: frozenset[int]) -> None:
    """Wait a little for what the child had started, and end what is left; `others` were there before."""
    deadline = time.monotonic() + _PATIENCE_S
    spared = set(others)
    while set(_children()) - spared and time.monotonic() < deadline:
        _reap()
        time.sleep(_LOOK_S)
    for _ in range(100):  # ending one may bring its own children here
        left = set(_children()) - spared
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except PermissionError:  # it has become somebody else's
                spared.add(pid)
            else:
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


def end_likewise(number: int) -> None:
    """End this process by a signal, as the child was ended: a shell is to see it."""
    handled: Any = {number}
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, handled)
    os.kill(os.getpid(), number)
