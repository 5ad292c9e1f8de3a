"""A command in a child: its result comes back, and whatever ends the child otherwise is told by the parent."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import atexit, os, signal, subprocess, sys, time
from kernbench_core.errors import KernbenchError
from kernbench_core.process import supervision, supervisor
supervision.GRACE_S = supervisor.GRACE_S = 0.2
supervision._END_S = supervision._BETWEEN_S = 0.3
def stuck():
    return 3 ** (10**9)
def body():
{body}
try:
    code = supervisor.supervised(body, 0.2, lambda told: print("warned:", told, file=sys.stderr))
except KernbenchError as error:
    print(type(error).__name__, error.exit_code, error)
    code = 99
sys.exit(code)
"""


SLEEPER = "subprocess.Popen(['sleep', '1000'], stdout=-3, stderr=-3)"
LIMIT = "LimitError 5 the run reached its limit of 0.2 s of wall time"
REMEDY = "; raise --timeout if it is only long.\n"


def carried_out(tmp_path: Path, *body: str) -> subprocess.CompletedProcess[str]:
    """Run a process whose command has this body, to the end of all that it started."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(body="".join(f"    {line}\n" for line in body)))
    return subprocess.run([sys.executable, file], capture_output=True, text=True, check=False, timeout=60)


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
        f"KernelError 6 the program ended the process with exit code {code} before the command had come to its end; "
        "return or raise instead of os._exit.\n",
    )


@pytest.mark.parametrize("behind_the_end", [False, True])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_child_that_a_signal_ends_has_the_code_of_a_shell(
    tmp_path: Path, number: signal.Signals, behind_the_end: bool
) -> None:
    """Its user reads what it was, and nothing that it started stays."""
    kill = (
        f"atexit.register(os.kill, os.getpid(), {number:d})" if behind_the_end else f"os.kill(os.getpid(), {number:d})"
    )
    done = carried_out(tmp_path, f"print({SLEEPER}.pid, flush=True)", kill, "return 0")
    sleeper, _, told = done.stdout.partition("\n")
    who = "by the system where memory is exhausted" if number == signal.SIGKILL else "by a fault in its C code"
    assert (done.returncode, told) == (
        99,
        f"KernelError {128 + number} the process of the run was killed by signal {number:d} "
        f"({signal.strsignal(number)}): by the program in it, by somebody else, or {who}.\n",
    )
    assert not is_running(int(sleeper))


@pytest.mark.parametrize(
    "begin",
    [
        "supervision.arm(0.2)",
        "supervision.begin_run(); supervision.arm(0.2); supervision.disarm(failed=True)",
        "supervision.begin_run(); supervision.arm(0.2); supervision.disarm()",
        "supervision.arm(0.2); supervision.arm(1000); supervision.disarm()",
        "supervision.begin_run(); supervision.arm(0.2); supervision.end_run()",
    ],
    ids=["in a part", "in a part that failed", "between parts", "behind a part of a part", "behind a run in a part"],
)
def test_code_that_no_interrupt_ends_is_ended_with_all_that_it_started(tmp_path: Path, begin: str) -> None:
    """The line that it is in is told."""
    done = carried_out(tmp_path, f"print({SLEEPER}.pid, flush=True)", begin, "stuck()")
    sleeper, _, told = done.stdout.partition("\n")
    where = f" in {tmp_path / 'program.py'}:8, in code that no interrupt ends"
    assert (done.returncode, told) == (99, f"{LIMIT}{where}{REMEDY}")
    assert not is_running(int(sleeper))


@pytest.mark.parametrize(
    "limit",
    [
        "supervision.arm(0.05); supervision.disarm()",
        "supervision.begin_run(); supervision.arm(0.05); supervision.disarm(); supervision.end_run()",
        "os.fork() or (supervision.arm(0.05), time.sleep(0.5), os._exit(0)); os.wait()",
    ],
    ids=["a part", "a run", "a fork"],
)
def test_a_limit_that_was_kept_ends_nothing(tmp_path: Path, limit: str) -> None:
    """Longer than the limit and what comes on top, after it was over."""
    done = carried_out(tmp_path, limit, "time.sleep(0.8)", "return 4")
    assert (done.returncode, done.stdout, done.stderr) == (4, "", "")


@pytest.mark.parametrize(("code", "left"), [(5, False), (130, False), (143, False), (0, True), (1, True), (6, True)])
def test_what_a_command_leaves_running_is_ended_where_the_command_was(tmp_path: Path, code: int, left: bool) -> None:
    """By a limit, Ctrl-C or SIGTERM; what stays behind an end of its own is wanted."""
    done = carried_out(tmp_path, f"print({SLEEPER}.pid)", f"return {code}")
    sleeper = int(done.stdout)
    try:
        assert (done.returncode, done.stderr, is_running(sleeper)) == (code, "", left)
    finally:
        if is_running(sleeper):
            os.kill(sleeper, signal.SIGKILL)


def test_a_process_that_stops_itself_is_ended_from_outside(tmp_path: Path) -> None:
    """Nothing in it runs any more."""
    done = carried_out(tmp_path, "os.kill(os.getpid(), signal.SIGSTOP)")
    assert (done.returncode, done.stdout) == (
        99, f"{LIMIT}, while its process was stopped, as SIGSTOP does{REMEDY}"
    )  # fmt: skip


def test_a_process_that_is_stopped_for_a_while_goes_on(tmp_path: Path) -> None:
    """Whoever stopped it woke it in time."""
    waker = "os.fork() or (time.sleep(0.1), os.kill(os.getppid(), signal.SIGCONT), os._exit(0))"
    done = carried_out(tmp_path, waker, "os.kill(os.getpid(), signal.SIGSTOP)", "time.sleep(0.8)", "return 4")
    assert (done.returncode, done.stdout, done.stderr) == (4, "", "")


def test_a_program_that_goes_on_behind_the_end_keeps_its_code(tmp_path: Path) -> None:
    """It is told, with its line."""
    done = carried_out(tmp_path, "atexit.register(stuck)", "return 3")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        f"warned: the program was still in {tmp_path / 'program.py'}:8 after the end, and ended with the command; let "
        "what it registers with atexit, and what its objects do in __del__, come to an end.\n"
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_to_the_parent_reach_the_child(tmp_path: Path, number: signal.Signals) -> None:
    """The child alone decides what comes of them."""
    done = carried_out(
        tmp_path,
        "came = []",
        f"signal.signal({number:d}, lambda *_: came.append(1))",
        f"os.kill(os.getppid(), {number:d})",
        "while not came: time.sleep(0.01)",
        "return 6",
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
