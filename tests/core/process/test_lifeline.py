"""A process that is tied to another one ends with it, also where it has no say in that."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os, sys, time
from kernbench_core.process import lifeline
parent = os.getpid()
if os.fork() == 0:
    lifeline.end_with(parent)
    print("tied", flush=True)
    time.sleep(1000)
time.sleep(1000)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel of Linux sees to it")
def test_a_process_ends_with_its_parent() -> None:
    """The pipe that both hold closes when both have ended."""
    program = [sys.executable, "-c", PROGRAM]
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
