"""What a process tells of the child that it watched: by its report, its exit status, and where it had to be killed."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest

from kernbench_core.errors import KernelError, LimitError
from kernbench_core.process import supervision
from kernbench_core.process.supervision import KilledError, idle_place

LATE = b"Timeout (0:00:03)!\nThread 0x1 (most recent call first):\n  File \"/home/me/bench.py\", line 7 in spin\n"
BY_SIGNAL = signal.SIGKILL
BY_EXIT_3 = 3 << 8
NO_OTHER_PROCESS = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks through /proc")


def told(report: bytes, status: int, killed_in: str | None = None) -> tuple[int, list[str]]:
    """Return the exit code of a child that ended so, with a limit of 2 s, and the warnings."""
    warned: list[str] = []
    return supervision._verdict(supervision._End(report, status, killed_in), 2.0, warned.append), warned


@pytest.mark.parametrize("status", [0, BY_EXIT_3])
def test_the_code_that_a_child_reported_is_its_verdict(status: int) -> None:
    """Whatever its process ends with behind it."""
    assert told(b"\nended with 3\n", status) == (3, [])


def test_a_child_that_raised_ends_with_its_own_code() -> None:
    """That of SystemExit among them; it has told of it by itself."""
    assert told(b"\nraised\n", BY_EXIT_3) == (3, [])


@pytest.mark.parametrize(("report", "where"), [(LATE, "in /home/me/bench.py:7"), (b"", "there")])
def test_what_goes_on_behind_the_end_is_a_warning(report: bytes, where: str) -> None:
    """The verdict stands."""
    killed = None if report else "in code that never returned to Python"
    assert told(b"\nended with 1\n" + report, BY_SIGNAL, killed) == (
        1,
        [
            f"the program was still {where} 5 s after the end, and ended with the command; let what it registers with "
            "atexit, and what its objects do in __del__, come to an end."
        ],
    )


@pytest.mark.parametrize(
    ("report", "killed", "where"),
    [
        (LATE, None, " in /home/me/bench.py:7, in code that never returned to Python"),
        (b"", "while its process was stopped, as SIGSTOP does", ", while its process was stopped, as SIGSTOP does"),
    ],
)
def test_a_child_that_came_to_its_limit_is_a_limit_error(report: bytes, killed: str | None, where: str) -> None:
    """By its own watch, or by the one from outside."""
    with pytest.raises(LimitError) as caught:
        told(report, BY_SIGNAL, killed)
    assert str(caught.value) == (
        f"the run reached its limit of 2 s of wall time{where}; raise --timeout if it is only long."
    )


@pytest.mark.parametrize(("report", "when"), [(b"", "before"), (b"\nended with 0\n", "after")])
def test_a_child_that_a_signal_killed_has_the_code_of_a_shell(report: bytes, when: str) -> None:
    """And names it."""
    with pytest.raises(KilledError) as caught:
        told(report, signal.SIGSEGV)
    assert (caught.value.exit_code, caught.value.number) == (139, signal.SIGSEGV)
    assert str(caught.value) == (
        f"the process of the run was killed by signal 11 (SIGSEGV) {when} the command had come to its end: by the "
        "program in it, by somebody else, or by a fault in its C code."
    )


def test_a_child_that_ended_without_a_word_was_ended_by_its_program() -> None:
    """As by os._exit."""
    with pytest.raises(KernelError) as caught:
        told(b"", BY_EXIT_3)
    assert str(caught.value) == (
        "the program ended the process with exit code 3 before the command had come to its end; return or raise "
        "instead of os._exit."
    )


@NO_OTHER_PROCESS
def test_where_a_process_is_that_runs_no_code_of_ours() -> None:
    """Stopped, or another program; not one that runs, nor one that is gone."""
    ours = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    other = subprocess.Popen(["sleep", "60"])
    try:
        name = Path(f"/proc/{other.pid}/exe").readlink().name
        assert idle_place(other.pid) == f"in {name!r}, which the program put in its own place"
        assert idle_place(ours.pid) is None
        os.kill(ours.pid, signal.SIGSTOP)
        deadline = time.monotonic() + 60
        while idle_place(ours.pid) is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert idle_place(ours.pid) == "while its process was stopped, as SIGSTOP does"
        assert {ours.pid, other.pid} <= set(supervision._children())
    finally:
        for child in (ours, other):
            child.kill()
            child.communicate()
    assert idle_place(ours.pid) is None


def test_a_limit_sets_the_deadline_that_others_see_until_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its grace included; without a limit there is none."""
    deadline = supervision._Deadline()
    monkeypatch.setattr(supervision, "_deadline", deadline)
    assert not deadline.is_over
    supervision.arm(-supervision.GRACE_S - 1.0)
    assert deadline.is_over
    supervision.disarm()
    assert not deadline.is_over
    supervision.arm(60.0)
    assert not deadline.is_over
    deadline.set(-math.inf)
    assert deadline.is_over


@pytest.mark.parametrize(("code", "reported"), [(4, b"\nended with 4\n"), (None, b"\nraised\n")])
def test_a_child_reports_how_its_body_ended(
    monkeypatch: pytest.MonkeyPatch, code: int | None, reported: bytes, tmp_path: Path
) -> None:
    """Before anything else can end its process."""
    monkeypatch.setattr(supervision, "_report", None)
    monkeypatch.setattr(supervision, "_deadline", None)

    def body() -> int:
        if code is None:
            raise ValueError("no")
        return code

    file: IO[bytes]
    with (tmp_path / "report").open("wb+", buffering=0) as file:
        deadline = supervision._Deadline()
        try:
            if code is None:
                with pytest.raises(ValueError, match=r"^no$"):
                    supervision._as_child(body, file.fileno(), deadline)
            else:
                assert supervision._as_child(body, file.fileno(), deadline) == code
        finally:
            supervision.disarm()
            report = supervision._report
        file.seek(0)
        assert file.read() == reported
    assert report is not None
    os.close(report)
