"""A command in a child of the process that was started, which says what became of it: only where --timeout is given."""

from __future__ import annotations

import os
import re
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress

from kernbench_core.errors import KernelError, LimitError
from kernbench_core.process.lifeline import adopt_orphans, end_with
from kernbench_core.process.quiet_exit import QuietExit
from kernbench_core.process.supervision import (
    CUT_SHORT,
    GRACE_S,
    STOPPED,
    command_is_done,
    ended_by_limit,
    limit_error,
    line_in,
    report_to,
)

_VERDICT = re.compile(r"\nended with (\d+)\n")


def supervised(body: Callable[[], int], limit_s: float, warn: Callable[[str], None]) -> int:
    """Call `body` in a child of this process, with a process group of its own; return its result there and here.

    `limit_s` is the limit on wall time that the body keeps to. Signals sent to this process reach the group, which has
    the terminal when it asks for that. Where a limit or a signal ends the child or what it does, the group is ended.

    Raises:
        LimitError: the limit was reached where nothing could be raised in the child.
        KernelError: the program in the child ended it, or a signal did, whose exit code it has.
    """
    report = tempfile.TemporaryFile()  # noqa: SIM115 - both processes keep it
    parent = os.getpid()
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGTSTP})
    child = os.fork()
    with suppress(OSError):
        os.setpgid(child, child)  # by both: neither can wait for the other
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)
        end_with(parent)
        return _as_child(body, os.dup(report.fileno()))
    adopt_orphans()
    _hand_signals_on(child)
    signal.pthread_sigmask(signal.SIG_SETMASK, usual)
    status, was_stopped = _wait(child, limit_s)
    report.seek(0)
    text = report.read().decode(errors="replace")
    late = limit_error(limit_s, "", STOPPED) if was_stopped else ended_by_limit(text, limit_s)
    return _outcome(child, text, status, late, warn)


def _outcome(child: int, text: str, status: int, late: LimitError | None, warn: Callable[[str], None]) -> int:
    """Return the exit code of a child that wrote this and ended so; raise what `supervised` does."""
    done = [int(code) for code in _VERDICT.findall(text)]
    if late is not None or os.WIFSIGNALED(status) or not CUT_SHORT.isdisjoint(done):
        _end_group(child)
    if done and late is not None:
        line = line_in(text)
        warn(
            f"the program was still {'there' if line is None else f'in {line}'} after the end, and ended with the "
            "command; let what it registers with atexit, and what its objects do in __del__, come to an end."
        )
    elif late is not None:
        raise late
    elif not done or os.WIFSIGNALED(status):
        raise _ended_by_itself(status)
    return done[-1]


def _hand_signals_on(child: int) -> None:
    """Have what is sent to this process reach the child: Ctrl-C and Ctrl-Z its group, as those of a terminal would."""

    def hand_on(number: int, frame: object) -> None:
        with suppress(OSError):  # it has just ended
            (os.kill if number == signal.SIGTERM else os.killpg)(child, number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGTSTP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, hand_on)


def _as_child(body: Callable[[], int], report: int) -> int:
    """Call `body`, and write to the file `report` how it ended."""
    report_to(report, supervised=True)
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, QuietExit):
        handler.report = command_is_done
    code = 1
    try:
        code = body()
    finally:
        command_is_done(code)
    return code


def _wait(child: int, limit_s: float) -> tuple[int, bool]:
    """Wait for the child; return its exit status, and whether it was killed as it was stopped longer than its limit.

    It has the terminal once it reads from it. Where Ctrl-Z stops it, this process stops for the shell, too.
    """
    late: list[int] = []
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # whoever takes the terminal back does not have it

    def kill(number: int, frame: object) -> None:
        late.append(number)
        os.killpg(child, signal.SIGKILL)

    signal.signal(signal.SIGALRM, kill)
    while True:
        _, status = os.waitpid(child, os.WUNTRACED | os.WCONTINUED)
        if os.WIFCONTINUED(status):
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        elif not os.WIFSTOPPED(status):
            _hand_terminal(child, os.getpgrp())
            return status, bool(late)
        elif os.WSTOPSIG(status) == signal.SIGSTOP:
            signal.setitimer(signal.ITIMER_REAL, limit_s + GRACE_S)
        else:
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


def _end_group(group: int) -> None:
    """Wait a little for what the child had started, and end what is left."""
    deadline = time.monotonic() + GRACE_S
    with suppress(ChildProcessError):  # nobody is left
        while time.monotonic() < deadline:
            os.waitpid(-group, os.WNOHANG)
            time.sleep(0.02)
    with suppress(OSError):
        os.killpg(group, signal.SIGKILL)
        while os.waitpid(-group, 0):
            pass


def _ended_by_itself(status: int) -> KernelError:
    """Return the error of a child whose process ended with this status before its command did."""
    if not os.WIFSIGNALED(status):
        return KernelError(
            f"the program ended the process with exit code {os.waitstatus_to_exitcode(status)} before the command had "
            "come to its end; return or raise instead of os._exit."
        )
    number = os.WTERMSIG(status)
    who = "by the system where memory is exhausted" if number == signal.SIGKILL else "by a fault in its C code"
    killed = KernelError(
        f"the process of the run was killed by signal {number} ({signal.strsignal(number)}): by the program in it, by "
        f"somebody else, or {who}."
    )
    killed.exit_code = 128 + number
    return killed
