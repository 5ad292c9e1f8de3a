"""A command in a child: its result comes back, and whatever ends the child otherwise is told by the parent."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kernbench_core.errors import LimitError
from kernbench_core.process.supervision import ended_by_limit

REPO = Path(__file__).parents[3]
PROGRAM = """
import atexit, faulthandler, os, signal, subprocess, sys, time
from kernbench_core.errors import KernbenchError
from kernbench_core.process import supervision
supervision.GRACE_S, supervision._END_S, supervision._PATIENCE_S = 0.1, 0.3, 0.1
supervision._KEEPER_LOOK_S, supervision._LATE_S = 0.1, 1.0
def stuck():
    return 3 ** (10**9)
def body():
{body}
try:
    code = supervision.supervised(body, 0.2, lambda told: print("warned:", told, file=sys.stderr))
except supervision.KilledError as error:
    print(type(error).__name__, error.exit_code, error, flush=True)
    supervision.end_likewise(error.number)
except KernbenchError as error:
    print(type(error).__name__, error)
    code = 99
sys.exit(code)
"""


SLEEPER = "subprocess.Popen(['sleep', '1000'], stdout=-3, stderr=-3, start_new_session=True)"


def carried_out(tmp_path: Path, *body: str) -> subprocess.CompletedProcess[str]:
    """Run a process whose command has this body, to the end of all that it started."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(body="".join(f"    {line}\n" for line in body)))
    return subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)


def is_running(pid: int) -> bool:
    """Tell whether a process is there; one that has ended was waited for."""
    return Path(f"/proc/{pid}").exists()


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


@pytest.mark.parametrize("code", [0, 7])
def test_a_child_that_ends_the_process_is_an_error(tmp_path: Path, code: int) -> None:
    """Also where it says that all was well."""
    done = carried_out(tmp_path, f"os._exit({code})")
    assert (done.returncode, done.stdout) == (
        99,
        f"KernelError the program ended the process with exit code {code} before the command had come to its end; "
        "return or raise instead of os._exit.\n",
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_child_that_a_signal_ends_ends_the_parent_likewise(tmp_path: Path, number: signal.Signals) -> None:
    """A shell is to see what ended the command, and its user to read it."""
    done = carried_out(tmp_path, f"signal.signal({number:d}, signal.SIG_DFL)" if number != signal.SIGKILL else "pass",
                       f"os.kill(os.getpid(), {number:d})", "time.sleep(1000)")  # fmt: skip
    who = "by the system where memory is exhausted" if number == signal.SIGKILL else "by a fault in its C code"
    assert (done.returncode, done.stdout) == (
        -number,
        f"KilledError {128 + number} the process of the run was killed by signal {number:d} ({number.name}) before the "
        f"command had come to its end: by the program in it, by somebody else, or {who}.\n",
    )


def test_a_signal_without_a_name_is_told_too(tmp_path: Path) -> None:
    """Of those of real time only the first and the last have one."""
    number = signal.SIGRTMIN + 1
    done = carried_out(tmp_path, f"os.kill(os.getpid(), {number})", "time.sleep(1000)")
    told = f"KilledError {128 + number} the process of the run was killed by signal {number} (of real time) before the "
    assert (done.returncode, done.stdout[: len(told)]) == (-number, told)


def test_a_child_that_is_killed_behind_its_end_had_come_to_it(tmp_path: Path) -> None:
    """As by a crash of a library that is unloaded; nothing that it started stays."""
    kill = "atexit.register(os.kill, os.getpid(), signal.SIGKILL)"
    done = carried_out(tmp_path, f"print({SLEEPER}.pid, flush=True)", kill, "return 0")
    sleeper, _, told = done.stdout.partition("\n")
    assert told.startswith("KilledError 137 the process of the run was killed by signal 9 (SIGKILL) after the command ")
    assert (done.returncode, is_running(int(sleeper))) == (-signal.SIGKILL, False)


def test_code_that_never_returns_to_python_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    """The line that it is in is told; the pipe that all of them hold closes."""
    sleeper = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])"
    done = carried_out(tmp_path, sleeper, "supervision.arm(0.2)", "stuck()")
    assert (done.returncode, done.stdout) == (
        99,
        f"LimitError the run reached its limit of 0.2 s of wall time in {tmp_path / 'program.py'}:8, in code that "
        "never returned to Python; raise --timeout if it is only long.\n",
    )


@pytest.mark.parametrize(("code", "left"), [(5, False), (130, False), (143, False), (0, True), (1, True), (6, True)])
def test_what_a_command_leaves_running_is_ended_where_the_command_was(tmp_path: Path, code: int, left: bool) -> None:
    """By a limit, Ctrl-C or SIGTERM, in whatever session it is; what stays behind an end of its own is wanted."""
    done = carried_out(tmp_path, f"print({SLEEPER}.pid)", f"return {code}")
    sleeper = int(done.stdout)
    try:
        assert (done.returncode, done.stderr, is_running(sleeper)) == (code, "", left)
    finally:
        if is_running(sleeper):
            os.kill(sleeper, signal.SIGKILL)


def test_children_that_were_there_before_are_none_of_the_commands(tmp_path: Path) -> None:
    """As those of a shell that has become this process."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(body="    return 5\n"))
    becomes = f"os.execv(sys.executable, [sys.executable, {str(file)!r}])"
    before = f"import os, subprocess, sys; print({SLEEPER}.pid, flush=True); {becomes}"
    program = [sys.executable, "-c", before]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    sleeper = int(done.stdout)
    try:
        assert (done.returncode, done.stderr, is_running(sleeper)) == (5, "", True)
    finally:
        os.kill(sleeper, signal.SIGKILL)


@pytest.mark.parametrize(
    ("how", "where"),
    [
        ("os.kill(os.getpid(), signal.SIGSTOP)", "while its process was stopped, as SIGSTOP does"),
        ("os.execvp('sleep', ['sleep', '1000'])", "in 'sleep', which the program put in its own place"),
        ("faulthandler.cancel_dump_traceback_later(); stuck()", "in code that never returned to Python"),
    ],
)
def test_a_process_that_watches_itself_no_more_is_ended_from_outside(tmp_path: Path, how: str, where: str) -> None:
    """Stopped, become another program, or without its watch."""
    done = carried_out(tmp_path, f"print({SLEEPER}.pid, flush=True)", "supervision.arm(0.2)", how)
    sleeper, _, told = done.stdout.partition("\n")
    limit = "LimitError the run reached its limit of 0.2 s of wall time"
    assert (done.returncode, told) == (99, f"{limit}, {where}; raise --timeout if it is only long.\n")
    assert not is_running(int(sleeper))


def test_a_process_that_is_stopped_behind_the_end_keeps_its_code(tmp_path: Path) -> None:
    """It is told, without a line."""
    done = carried_out(tmp_path, "atexit.register(os.kill, os.getpid(), signal.SIGSTOP)", "return 5")
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr == (
        "warned: the program was still there 0.3 s after the end, and ended with the command; let what it registers "
        "with atexit, and what its objects do in __del__, come to an end.\n"
    )


def test_a_process_that_is_stopped_for_a_while_goes_on(tmp_path: Path) -> None:
    """No limit has begun, or it is over: whoever stopped it may wake it when he likes."""
    for limit in ("supervision.arm(1000)", "supervision.arm(0.05); supervision.disarm()"):
        quiet = "__import__('warnings').simplefilter('ignore')"  # a fork beside the thread of the watch
        waker = f"{quiet}; os.fork() or (time.sleep(2), os.kill(os.getppid(), signal.SIGCONT), os._exit(0))"
        done = carried_out(tmp_path, limit, waker, "os.kill(os.getpid(), signal.SIGSTOP)", "return 4")
        assert (done.returncode, done.stdout, done.stderr) == (4, "", "")


def test_a_limit_that_was_disarmed_ends_nothing(tmp_path: Path) -> None:
    """Longer than the limit and what comes on top, after it was kept."""
    done = carried_out(tmp_path, "supervision.arm(0.05)", "supervision.disarm()", "time.sleep(0.5)", "return 4")
    assert (done.returncode, done.stdout, done.stderr) == (4, "", "")


def test_a_program_that_goes_on_behind_the_end_keeps_its_code(tmp_path: Path) -> None:
    """It is told, with its line."""
    done = carried_out(tmp_path, "atexit.register(stuck)", "return 5")
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr == (
        f"warned: the program was still in {tmp_path / 'program.py'}:8 0.3 s after the end, and ended with the "
        "command; let what it registers with atexit, and what its objects do in __del__, come to an end.\n"
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_to_the_parent_reach_the_child(tmp_path: Path, number: signal.Signals) -> None:
    """The child alone decides what comes of them."""
    done = carried_out(
        tmp_path,
        f"signal.signal({number:d}, lambda *_: sys.exit(6))",
        f"os.kill(os.getppid(), {number:d})",
        "while True: time.sleep(0.01)",  # a signal that comes just before a sleep is handled behind it
    )
    assert (done.returncode, done.stdout) == (6, "")


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
    end = ", in code that never returned to Python; raise --timeout if it is only long."
    error = ended_by_limit(REPORT.format(ours=ours), 1.5)
    assert isinstance(error, LimitError)
    assert str(error) == f"the run reached its limit of 1.5 s of wall time in /home/me/kernel.py:7{end}"
    nobody = re.sub(r"  File \"/home.*\n", "", REPORT.format(ours=ours))
    assert str(ended_by_limit(nobody, 60)) == f"the run reached its limit of 60 s of wall time{end}"
    assert ended_by_limit("Fatal Python error: Aborted", 60) is None
