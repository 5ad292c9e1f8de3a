"""Processes end with the block that started them, whatever ends it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

from kernbench_ccl.processes import TERMINATED

LONG = ["ccl", "all_reduce", "--topology", "tiny", "--ranks", "8", "--algo", "ring", "-b", "1K", "-e", "256M", "-q"]
MAIN = "import sys; from kernbench_core.cli import main; sys.exit(main())"


def test_sigterm_ends_a_table_and_its_processes_without_a_word():
    """The exit code is that of a command which the signal ended; rows that were there stay."""
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, *LONG], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as table:
        for line in table.stdout:
            if line.strip().startswith("1024"):
                break
        table.send_signal(signal.SIGTERM)
        began = time.monotonic()
        _, err = table.communicate(timeout=60)
    assert (table.returncode, err) == (TERMINATED, "")
    assert TERMINATED == 143
    assert time.monotonic() - began < 30  # the pipes are closed: no process has them any more
