"""Ctrl-C before a command has begun."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).parents[1]
MAIN = "import signal, sys\n{}\nfrom kernbench_core.cli import main\nsys.exit(main())"
LOADING = """
class Interrupting:
    def find_spec(self, name, *_):
        if name == "rich_click":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
"""
def called(folder: Path, before: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, in which something happens before."""
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    program = [sys.executable, "-c", MAIN.format(before), *args]
    return subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_ctrl_c_before_the_command_has_begun_is_a_sentence(tmp_path: Path) -> None:
    """No traceback of what was being imported."""
    done = called(tmp_path, LOADING, "run", "gemm")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted while loading kernbench.\n")


def test_a_program_that_ignores_ctrl_c_does_so_while_it_is_loaded(tmp_path: Path) -> None:
    """As in the background of a shell."""
    ignore = "signal.signal(signal.SIGINT, signal.SIG_IGN)"
    done = called(tmp_path, f"{ignore}\n{LOADING}", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("kernbench, version ") or done.stdout.startswith("kernbench ")
