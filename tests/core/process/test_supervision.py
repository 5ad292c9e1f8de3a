"""A command in a child: its result comes back, and whatever ends the child otherwise is told by the parent."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kernbench_core.errors import LimitError
from kernbench_core.process.supervision import ended_by_limit
from tests.core.forked import is_running, soon_ended

REPO = Path(__file__).parents[3]
REPORT = """Timeout (0:00:02)!
Thread 0x01 (most recent call first):
  File "/other/thread.py", line 1 in watch

Thread 0x02 (most recent call first):
  File "{ours}/kernel/bridge.py", line 5 in body
  File "/home/me/kernel.py", line 7 in kernel
  File "/home/me/bench.py", line 9 in bench
"""


def test_a_report_is_read_for_the_innermost_line_of_the_main_thread() -> None:
    """That is written last; our own lines and those of Python stand between. No head, no limit."""
    ours = REPO / "kernbench_core"
    end = ", in code that no interrupt ends; raise --timeout if it is only long."
    error = ended_by_limit(REPORT.format(ours=ours), 1.5)
    assert isinstance(error, LimitError)
    assert str(error) == f"the run reached its limit of 1.5 s of wall time in /home/me/kernel.py:7{end}"
    nobody = re.sub(r"  File \"/home.*\n", "", REPORT.format(ours=ours))
    assert str(ended_by_limit(nobody, 60)) == f"the run reached its limit of 60 s of wall time{end}"
    assert ended_by_limit("Fatal Python error: Aborted", 60) is None


PROGRAM = """
import contextlib, os, signal, subprocess, sys, time
from kernbench_core.errors import KernbenchError
from kernbench_core.process import interrupt, supervision
from kernbench_core.process.interrupt import Alarm
supervision.GRACE_S, interrupt._GRACE_S = 0.2, 1000.0
def stuck():
    return 3 ** (10**9)
def body():
{body}
try:
    code = supervision.supervised(body, 0.2)
except KernbenchError as error:
    print(type(error).__name__, error.exit_code, error)
    code = 99
sys.exit(code)
"""


SLEEPER = "subprocess.Popen(['sleep', '1000'], stdout=-3, stderr=-3)"
LIMIT = "LimitError 5 the run reached its limit of 0.2 s of wall time"
REMEDY = "; raise --timeout if it is only long.\n"


def carried_out(tmp_path: Path, *body: str, first: str = "") -> subprocess.CompletedProcess[str]:
    """Run a process whose command has this body, to the end of all that it started; `first` comes before all."""
    file = tmp_path / "program.py"
    file.write_text(first + PROGRAM.format(body="".join(f"    {line}\n" for line in body)))
    return subprocess.run([sys.executable, file], capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("code", [0, 3, 255])
def test_the_code_of_the_child_is_that_of_the_parent(tmp_path: Path, code: int) -> None:
    """What the child prints, it prints once."""
    done = carried_out(tmp_path, "print('hello')", f"return {code}")
    assert (done.returncode, done.stdout, done.stderr) == (code, "hello\n", "")


def test_what_a_child_raises_is_its_own(tmp_path: Path) -> None:
    """The parent adds nothing to the traceback, and ends as Python does."""
    done = carried_out(tmp_path, "raise ValueError('mine')")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("Traceback") == 1 and done.stderr.endswith("ValueError: mine\n")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_child_that_a_signal_ends_has_the_code_of_a_shell(tmp_path: Path, number: signal.Signals) -> None:
    """Its user reads what it was, and nothing that it started stays."""
    done = carried_out(tmp_path, f"print({SLEEPER}.pid, flush=True)", f"os.kill(os.getpid(), {number:d})", "return 0")
    sleeper, _, told = done.stdout.partition("\n")
    who = "by the system where memory is exhausted" if number == signal.SIGKILL else "by a fault in its C code"
    assert (done.returncode, told) == (
        99,
        f"KernelError {128 + number} the process of the run was killed by signal {number:d} "
        f"({signal.strsignal(number)}): by the program in it, by somebody else, or {who}.\n",
    )
    assert soon_ended(int(sleeper))


@pytest.mark.parametrize(
    "begin",
    [
        "Alarm(0.2).__enter__()",
        "Alarm(0.2).__enter__(); Alarm(1000).__enter__().__exit__(None, None, None)",
    ],
    ids=["in a part", "behind a part of a part"],
)
def test_code_that_no_interrupt_ends_is_ended_with_all_that_it_started(tmp_path: Path, begin: str) -> None:
    """The line that it is in is told."""
    done = carried_out(tmp_path, f"print({SLEEPER}.pid, flush=True)", begin, "stuck()")
    sleeper, _, told = done.stdout.partition("\n")
    where = f" in {tmp_path / 'program.py'}:8, in code that no interrupt ends"
    assert (done.returncode, told) == (99, f"{LIMIT}{where}{REMEDY}")
    assert soon_ended(int(sleeper))


def test_a_limit_that_was_kept_ends_nothing(tmp_path: Path) -> None:
    """Longer than the limit and what comes on top, after it was over."""
    done = carried_out(tmp_path, "with Alarm(0.05): pass", "time.sleep(0.8)", "return 4")
    assert (done.returncode, done.stdout, done.stderr) == (4, "", "")


@pytest.mark.parametrize(("code", "left"), [(5, False), (130, False), (143, False), (0, True), (1, True), (6, True)])
def test_what_a_command_leaves_running_is_ended_where_the_command_was(tmp_path: Path, code: int, left: bool) -> None:
    """By a limit, Ctrl-C or SIGTERM; what stays behind an end of its own is wanted."""
    done = carried_out(tmp_path, f"print({SLEEPER}.pid)", f"return {code}")
    sleeper = int(done.stdout)
    try:
        assert (done.returncode, done.stderr) == (code, "")
        assert is_running(sleeper) if left else soon_ended(sleeper)
    finally:
        if left:
            os.kill(sleeper, signal.SIGKILL)


#: The parent is behind the child by half a second when it has forked.
LATE = """
import os, time
forked = os.fork
def fork():
    child = forked()
    time.sleep(0.5 if child else 0.0)
    return child
os.fork = fork
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("first", ["", LATE], ids=["on time", "late"])
def test_signals_to_the_parent_reach_the_child(tmp_path: Path, number: signal.Signals, first: str) -> None:
    """The child alone decides what comes of them, also of those that come before the parent can hand them on."""
    done = carried_out(
        tmp_path,
        "came = []",
        f"signal.signal({number:d}, lambda *_: came.append(1))",
        f"os.kill(os.getppid(), {number:d})",
        "while not came: time.sleep(0.01)",
        "return 6",
        first=first,
    )
    assert (done.returncode, done.stdout, done.stderr) == (6, "", "")


def test_a_child_that_reads_from_the_terminal_has_it_as_long_as_it_runs(tmp_path: Path) -> None:
    """As for a debugger; whoever comes after this process reads again."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(body="    print('it read', input(), flush=True)\n    return 4\n"))
    line = f"{sys.executable} {file}; echo it ended with $?; read more; echo then $more"
    shell, terminal = pty.fork()
    if shell == 0:
        os.execv("/bin/sh", ["sh", "-c", line])
    os.write(terminal, b"one\ntwo\n")
    shown = b""
    try:
        while b"then two" not in shown and select.select([terminal], [], [], 60.0)[0]:
            shown += os.read(terminal, 1 << 12)
    finally:
        os.kill(shell, signal.SIGKILL)
        os.waitpid(shell, 0)
        os.close(terminal)
    assert b"it read one\r\nit ended with 4\r\nthen two\r\n" in shown


TIED = """
import os, sys, time
from kernbench_core.process.supervision import end_with
parent = os.getpid()
if os.fork() == 0:
    end_with(parent)
    print("tied", flush=True)
    time.sleep(1000)
time.sleep(1000)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel of Linux sees to it")
def test_a_process_ends_with_its_parent() -> None:
    """The pipe that both hold closes when both have ended."""
    program = [sys.executable, "-c", TIED]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "tied\n"
        parent.kill()
        assert parent.stdout.read() == ""


def test_a_process_whose_parent_has_ended_before_ends_at_once() -> None:
    """There is nobody left to be told of."""
    program = "from kernbench_core.process.supervision import end_with\nend_with(1 << 22)\nprint('still there')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-9, "")
