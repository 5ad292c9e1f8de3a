"""A process that is tied to another one ends with it, also where it has no say in that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[3]
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
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(before=before)], env=environment, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "tied\n"
        parent.kill()
        assert parent.stdout.read() == ""


def test_a_process_whose_parent_has_ended_before_ends_at_once() -> None:
    """There is nobody left to be told of."""
    program = "import os\nfrom kernbench_core.process.lifeline import end_with\nend_with(1 << 22)\nprint('still there')"
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-9, "")
