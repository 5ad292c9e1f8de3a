"""What ends a process that no interrupt ends: code in C that never returns, an endless `__del__`.

A thread of the interpreter that runs no Python (`faulthandler`) writes where the process is, and ends it; the process
that started it says so. Only processes that have such a parent are ended so: those of a pool, and the child that the
command line has where --timeout is given.
"""

from __future__ import annotations

import math
import os
import re
import signal
import time
from contextlib import suppress
from pathlib import Path

from kernbench_core.errors import LimitError
from kernbench_core.package import OURS

#: How much later than the limit a process is ended in which nothing can be raised, in s.
GRACE_S = 2.0
#: How long a process may take from the end of its command to its own, where no limit was reached.
_END_S = 5.0
_DONE = b"\nended with %d\n"
_HEAD = "Timeout ("
_ENDLESS, STOPPED = "in code that no interrupt ends", "while its process was stopped, as SIGSTOP does"
_FRAME = re.compile(r'  File "(.*)", line (\d+) in ')
#: Exit codes of a command that a limit, Ctrl-C or SIGTERM ended.
CUT_SHORT = frozenset({LimitError.exit_code, 128 + signal.SIGINT, 128 + signal.SIGTERM})
_ROOT = Path(__file__).parents[2]
#: How the files begin whose lines are nobody else's: our own, and Python's.
_OURS = (*(f"{_ROOT / begin.replace('.', os.sep)}{os.sep}" for begin in OURS), f"{Path(os.__file__).parent}{os.sep}")

#: How much more a run may take between its parts, as for loading the next one.
_BETWEEN_S = 10.0

# Of the process, as the watch of faulthandler is: where it writes, and when this process is to be ended by then.
_report: int | None = None
_is_supervised = _is_in_run = False
_deadlines: list[float] = []


def report_to(file: int, *, supervised: bool = False) -> None:
    """Have this process ended when a limit on wall time does not end it, and where it was written to `file`.

    `supervised` is the child of a command, in which a run has a limit between its parts, too.
    """
    global _report, _is_supervised
    _report, _is_supervised = file, supervised


def _forget() -> None:
    """Leave the watch to the process that it watches: a fork has no thread of it, and would wait for that for ever."""
    global _report, _is_supervised, _is_in_run
    _report, _is_supervised, _is_in_run = None, False, False
    _deadlines.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def begin_run() -> None:
    """Have limits last where a supervised command is between the parts of its run, or takes a failed one apart."""
    global _is_in_run
    _is_in_run = _is_in_run or (_is_supervised and not _deadlines)


def end_run() -> None:
    """Have no limit on what follows a run that has ended, as writing its files; one inside another ends nothing."""
    global _is_in_run
    if not _deadlines:
        _is_in_run = False
        _watch_until(math.inf)


def arm(timeout_s: float) -> None:
    """Begin a limit: `GRACE_S` after it this process ends, unless `disarm` comes first or nobody would tell why."""
    _deadlines.append(time.monotonic() + timeout_s + GRACE_S)
    _watch_until(min(_deadlines))


def disarm(*, failed: bool = False) -> None:
    """End the limit that was begun last: that around it holds, or that of the run."""
    own = _deadlines.pop() if _deadlines else math.inf
    if _deadlines:
        _watch_until(min(_deadlines))
    elif not _is_in_run:
        _watch_until(math.inf)
    elif not failed:
        _watch_until(own + _BETWEEN_S)


def _watch_until(deadline: float) -> None:
    if _report is None:
        return
    import faulthandler

    if deadline == math.inf:
        faulthandler.cancel_dump_traceback_later()
    else:
        left_s = max(deadline - time.monotonic(), 0.001)
        faulthandler.dump_traceback_later(left_s, exit=True, file=_report)


def command_is_done(code: int) -> None:
    """Note that a supervised command has told its result, with this exit code: what is left may not take for ever."""
    if _is_supervised and _report is not None:
        os.write(_report, _DONE % code)
        _watch_until(time.monotonic() + (GRACE_S if code in CUT_SHORT else _END_S))


def ended_by_limit(report: str, limit_s: float) -> LimitError | None:
    """Return the error that a report tells of, of a process with this limit; None where it ended otherwise."""
    if _HEAD not in report:
        return None
    line = line_in(report)
    return limit_error(limit_s, f" in {line}" if line else "")


def limit_error(limit_s: float, line: str, how: str = _ENDLESS) -> LimitError:
    """Return the error of a process that was at `line` ("" where that is not known) when its limit came, and how."""
    return LimitError(
        f"the run reached its limit of {limit_s:g} s of wall time{line}, {how}; raise --timeout if it is only long."
    )


def line_in(report: str) -> str | None:
    """Return the innermost line of somebody else's code that the main thread was in."""
    frames = _FRAME.findall(report.rpartition("Thread ")[2])  # the main thread is written last
    return next((f"{file}:{line}" for file, line in frames if not file.startswith(_OURS)), None)


def idle_place(pid: int) -> str | None:
    """Say where a process is in which none of our code runs: stopped, or become another program; None for others.

    None too where the system does not tell.
    """
    with suppress(OSError):
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T":
            return STOPPED
        program = Path(f"/proc/{pid}/exe").readlink()
        if program != Path("/proc/self/exe").readlink():
            return f"in {program.name!r}, which the program put in its own place"
    return None
