"""What ends a process whose main thread never returns from C code: a big power, a regular expression that explodes.

No line of Python runs in it any more, so nothing in it can raise. A thread of the interpreter that needs none
(`faulthandler`) then writes where it was, and ends the process; another process, which started this one, tells what
happened. Only processes that have such another one are ended so: those of a pool, and the command line when it is given
a limit. That of the command line also ends it where no thread of it runs any more: stopped, or become another program.
"""

from __future__ import annotations

import math
import mmap
import os
import re
import signal
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from kernbench_core import records
from kernbench_core.errors import KernbenchError, KernelError, LimitError
from kernbench_core.process.lifeline import adopt_orphans, end_with
from kernbench_core.process.quiet_exit import QuietExit

#: How much later than the limit a process is ended in which nothing can be raised, in s.
GRACE_S = 2.0
_PATIENCE_S = 2.0
#: How long a process may take from the end of its command to its own.
_END_S = 5.0
#: What it reports at the end of its command.
_DONE, _VERDICT, _RAISED = b"\nended with %d\n", re.compile(rb"\nended with (\d+)\n"), b"\nraised\n"
_LOOK_S = 0.05
#: How often it is looked whether a child is late.
_KEEPER_LOOK_S = 0.25
#: How much longer it is waited for one that ought to end itself.
_LATE_S = 2.0
_FROM_TERMINAL = 0x80  # SI_KERNEL: the whole foreground group has it already
_HEAD = "Timeout ("
_ENDLESS_C = "in code that never returned to Python"
_FRAME = re.compile(r'  File "(.*)", line (\d+) in ')
#: Exit codes of a command that a limit, Ctrl-C or SIGTERM ended.
_CUT_SHORT = frozenset({LimitError.exit_code, 128 + signal.SIGINT, 128 + signal.SIGTERM})
_OURS = (str(Path(__file__).parents[1]) + os.sep, str(Path(os.__file__).parent) + os.sep)


class _Deadline:
    """A time of the monotonic clock, in s, that a process and its children see; infinite where there is none."""

    _FORM = struct.Struct("d")

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, self._FORM.size)
        self.set(math.inf)

    def set(self, deadline_s: float) -> None:
        self._FORM.pack_into(self._shared, 0, deadline_s)

    @property
    def is_over(self) -> bool:
        return bool(time.monotonic() > self._FORM.unpack_from(self._shared)[0])


# Of the process, as the watch of faulthandler and the process's end are.
_report: int | None = None
_deadline: _Deadline | None = None


def report_to(file: int) -> None:
    """Have this process ended when a limit on wall time does not end it, and where it was written to `file`."""
    global _report
    _report = file


def _keep_to(deadline: _Deadline) -> None:
    """Have whoever shares it know when this process must have ended."""
    global _deadline
    _deadline = deadline


def _forget() -> None:
    """Leave the watch to the process that it watches: a fork has no thread of it, and would wait for that for ever."""
    global _report, _deadline
    _report = _deadline = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def arm(timeout_s: float) -> None:
    """Begin a limit: `GRACE_S` after it this process ends, unless `disarm` comes first or nobody would tell why."""
    _arm(timeout_s + GRACE_S)


def _arm(wait_s: float) -> None:
    if _report is not None:
        import faulthandler

        faulthandler.dump_traceback_later(wait_s, exit=True, file=_report)
    if _deadline is not None:
        _deadline.set(time.monotonic() + wait_s)


def disarm() -> None:
    """End the limit that `arm` began."""
    if _report is not None:
        import faulthandler

        faulthandler.cancel_dump_traceback_later()
    if _deadline is not None:
        _deadline.set(math.inf)


def ended_by_limit(report: str, limit_s: float) -> LimitError | None:
    """Return the error that a report tells of, of a process with this limit; None where it ended otherwise."""
    if _HEAD not in report:
        return None
    line = _line_in(report)
    return limit_error(limit_s, f" in {line}" if line else "", _ENDLESS_C)


def limit_error(limit_s: float, line: str, how: str) -> LimitError:
    """Return the error of a process that was at `line` ("" where that is not known) when its limit came, and how."""
    return LimitError(
        f"the run reached its limit of {limit_s:g} s of wall time{line}, {how}; raise --timeout if it is only long."
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
        LimitError: the limit was reached where the child does not end itself, as in code that never returns to Python.
        KilledError: a signal ended the child; whoever has told of it calls `end_likewise`.
        KernelError: the child was ended by the program in it.
    """
    import tempfile

    forwarded = {signal.SIGINT, signal.SIGTERM}
    before = frozenset(_children())
    deadline = _Deadline()
    report = tempfile.TemporaryFile()  # noqa: SIM115 - both processes keep it
    parent = os.getpid()
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, {*forwarded, signal.SIGCHLD})
    signal.signal(signal.SIGCHLD, lambda *_: None)  # ignored it would not be waited for
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)
        end_with(parent)
        return _as_child(body, report.fileno(), deadline)
    adopt_orphans()
    status, killed_in = _wait(child, {*forwarded, signal.SIGCHLD}, deadline)
    report.seek(0)
    end = _End(report.read(), status, killed_in)
    if end.is_violent or end.code in _CUT_SHORT:
        _end_orphans(before)
    return _verdict(end, limit_s, warn)


def _as_child(body: Callable[[], int], report: int, deadline: _Deadline) -> int:
    """Call `body`, and write to the file `report` how it ended."""
    report_to(os.dup(report))  # open until the process ends
    _keep_to(deadline)
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, QuietExit):
        handler.report = lambda code: os.write(report, _DONE % code)
    try:
        code = body()
    except BaseException:
        os.write(report, _RAISED)
        raise
    os.write(report, _DONE % code)
    if isinstance(handler, QuietExit):
        handler.report = None
    _arm(_END_S)  # for what it runs at its very end
    return code


@records.frozen
class _End:
    """How a child ended: its report, its exit status, and where it was if it was killed for being late."""

    report: bytes
    status: int
    killed_in: str | None

    @property
    def text(self) -> str:
        """The report as text."""
        return self.report.decode(errors="replace")

    @property
    def code(self) -> int | None:
        """The exit code of the command; None where it did not come to its end."""
        done = _VERDICT.search(self.report)
        return None if done is None else int(done[1])

    @property
    def is_violent(self) -> bool:
        """Whether the child was ended, and did not end by itself."""
        return _HEAD in self.text or os.WIFSIGNALED(self.status)


def _verdict(end: _End, limit_s: float, warn: Callable[[str], None]) -> int:
    """Return the exit code of a child that ended so; raise what `supervised` does."""
    if end.code is not None and (end.killed_in is not None or _HEAD in end.text):
        line = _line_in(end.text)
        if line is not None or end.killed_in is not None:
            warn(
                f"the program was still {'there' if line is None else f'in {line}'} {_END_S:g} s after the end, and "
                "ended with the command; let what it registers with atexit, and what its objects do in __del__, come "
                "to an end."
            )
        return end.code
    if (found := ended_by_limit(end.text, limit_s)) is not None:
        raise found
    if end.killed_in is not None:
        raise limit_error(limit_s, "", end.killed_in)
    if os.WIFSIGNALED(end.status):
        raise KilledError(os.WTERMSIG(end.status), end.code is not None)
    if end.code is not None:
        return end.code
    code = os.waitstatus_to_exitcode(end.status)
    if end.report.endswith(_RAISED):
        return code
    raise KernelError(
        f"the program ended the process with exit code {code} before the command had come to its end; return or raise "
        "instead of os._exit."
    )


def _wait(child: int, signals: set[signal.Signals], deadline: _Deadline) -> tuple[int, str | None]:
    """Wait for the child, handing signals on that reached this process alone; return its exit status.

    A child that is still there behind the deadline is killed; where it was then is returned, too.
    """
    late_s, killed_in = 0.0, None
    while True:
        came = _next_signal(signals)
        if came is None:  # counted in looks: what was stopped together with this process is not late
            late_s = late_s + _KEEPER_LOOK_S if deadline.is_over else 0.0
            if late_s > _LATE_S and killed_in is None:
                killed_in = idle_place(child) or _ENDLESS_C
                os.kill(child, signal.SIGKILL)
            continue
        number, sender = came
        if number == signal.SIGCHLD:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return status, killed_in if os.WIFSIGNALED(status) else None
        elif sender != _FROM_TERMINAL:
            os.kill(child, number)


def idle_place(pid: int) -> str | None:
    """Say where a process is in which none of our code runs: stopped, or become another program; None for others.

    None too where the system does not tell.
    """
    with suppress(OSError):
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T":
            return "while its process was stopped, as SIGSTOP does"
        program = Path(f"/proc/{pid}/exe").readlink()
        if program != Path("/proc/self/exe").readlink():
            return f"in {program.name!r}, which the program put in its own place"
    return None


def _next_signal(signals: set[signal.Signals]) -> tuple[int, int] | None:
    """Wait for a signal; return its number and how it was sent, None where none comes for a while."""
    if sys.platform.startswith("linux"):
        found = signal.sigtimedwait(signals, _KEEPER_LOOK_S)
        return None if found is None else (found.si_signo, found.si_code)
    if not signals & signal.sigpending():
        time.sleep(_KEEPER_LOOK_S)
        return None
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
