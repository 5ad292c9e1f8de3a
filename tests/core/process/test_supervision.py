"""What a process tells that nothing interrupts, and where one is in which none of our code runs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernbench_core.errors import LimitError
from kernbench_core.process.supervision import ended_by_limit, idle_place

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


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks through /proc")
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
    finally:
        for child in (ours, other):
            child.kill()
            child.communicate()
    assert idle_place(ours.pid) is None
