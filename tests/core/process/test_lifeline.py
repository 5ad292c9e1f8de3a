"""A process that is tied to another one ends with it, also where it has no say in that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from kernbench_core.process import lifeline

PROGRAM = """
import os, sys, time
from kernbench_core.process import lifeline
lifeline._LOOK_S = 0.02
{before}
parent = os.getpid()
if os.fork() == 0:
    lifeline.end_with(parent)
    print("tied", flush=True)
    time.sleep(1000)
time.sleep(1000)
"""


@pytest.mark.parametrize("before", ["", "lifeline._prctl = lambda *_: False"])
def test_a_process_ends_with_its_parent(before: str) -> None:
    """By the kernel, and by a thread that looks; the pipe that both hold closes when both have ended."""
    program = [sys.executable, "-c", PROGRAM.format(before=before)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "tied\n"
        parent.kill()
        assert parent.stdout.read() == ""


def test_a_process_whose_parent_has_ended_before_ends_at_once() -> None:
    """There is nobody left to be told of."""
    program = "import os\nfrom kernbench_core.process.lifeline import end_with\nend_with(1 << 22)\nprint('still there')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-9, "")


def nobody_knows(name: object) -> object:
    """Find no library of C."""
    raise OSError(name)


@pytest.mark.parametrize(
    ("target", "value"), [("sys.platform", "darwin"), ("ctypes.CDLL", nobody_knows)], ids=["elsewhere", "no library"]
)
def test_a_thread_looks_where_the_kernel_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, target: str, value: object
) -> None:
    """While the parent is the same nothing happens; this process is ended when it has another."""
    parent, ended = [7], []
    monkeypatch.setattr(target, value)
    monkeypatch.setattr(lifeline, "_LOOK_S", 0.001)
    monkeypatch.setattr(os, "getppid", lambda: parent[0])
    monkeypatch.setattr(os, "kill", lambda *told: ended.append(told))
    lifeline.end_with(7)
    (thread,) = [each for each in threading.enumerate() if each.name == "kernbench-lifeline"]
    assert thread.daemon and not ended
    parent[0] = 1
    thread.join(60)
    assert ended == [(os.getpid(), signal.SIGKILL)]
