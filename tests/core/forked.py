"""Programs in processes forked from this one: signals reach and end them, and Python is not started for each."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from kernbench_core.cli import main
from kernbench_core.plugins import Plugins

Program = Callable[[], int]


def command(*args: str, plugins: Plugins | None = None) -> Program:
    """Return what `kernbench` does in a process of its own; `plugins` default to the installed ones."""

    def program() -> int:
        sys.argv = ["kernbench", *args]
        return main(None, plugins)

    return program


class Forked(subprocess.Popen[str]):
    """A process that carries out a function and ends with the exit code that it returns, for all else as Popen.

    What has been imported here is there, so what is asked of imports, and of the end of Python itself (`atexit`,
    `__del__`, threads that are left), needs a Python that is started.
    """

    def __init__(self, program: Program, **options: Any) -> None:
        self._program = program
        super().__init__([sys.executable], text=True, **options)

    def _execute_child(self, *given: Any) -> None:
        """Fork, where Popen would start a program; the arguments are those that it has had since Python 3.11."""
        cwd, env, ends, new_session = given[5], given[6], given[10:16], given[21]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads, as those of numpy, from Python 3.12 on
            self.pid = os.fork()
        if not self.pid:
            self._carry_out(cwd, env, ends, new_session)
        self._child_created = True
        self._close_pipe_fds(*ends)  # type: ignore[attr-defined]

    def _carry_out(self, cwd: Any, env: Any, ends: Sequence[int], new_session: bool) -> NoReturn:
        """Do what a process that Popen has started would do."""
        code = 1
        try:
            if new_session:
                os.setsid()
            _take_streams(ends)
            faulthandler.disable()
            os.chdir(cwd or ".")
            if env is not None:
                os.environ.clear()
                os.environ.update(env)
            code = self._program()
        except BaseException:
            traceback.print_exc()
        finally:
            try:
                sys.stdout.flush()
            finally:
                os._exit(code)


def _take_streams(ends: Sequence[int]) -> None:
    """Have the process's ends of pipes as its streams, buffered as Python does."""
    for number, (taken, left) in enumerate(((ends[0], ends[1]), (ends[3], ends[2]), (ends[5], ends[4]))):
        if taken >= 0:
            os.dup2(taken, number)
        if left >= 0:
            os.close(left)
    for taken in {ends[0], ends[3], ends[5]} - {-1}:
        os.close(taken)
    sys.stdin, sys.stdout = (open(number, mode, closefd=False) for number, mode in enumerate("rw"))  # noqa: SIM115
    sys.stderr = open(2, "w", 1, closefd=False, errors="backslashreplace")  # noqa: SIM115


def is_running(pid: int) -> bool:
    """Tell whether a process is there, and has not ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def soon_ended(pid: int) -> bool:
    """Tell whether a process has ended, or does so soon."""
    deadline = time.monotonic() + 30
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_running(pid)
