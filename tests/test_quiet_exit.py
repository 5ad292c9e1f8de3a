"""Ctrl-C before a command has begun and after its end: exit codes without a word of Python's own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[1]
MAIN = "import signal, sys\n{}\nfrom kernbench_core.cli import main\nsys.exit(main())"
LOADING = """
class Interrupting:
    def find_spec(self, name, *_):
        if name == "rich_click":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
"""
STARTING = """
from kernbench_core.cli import command
command.closed_streams = lambda: signal.raise_signal(signal.SIGINT)
"""
BENCH = """
import atexit, os, signal, time
def interrupt(*_, kill=os.kill, own=os.getpid(), number=signal.SIGINT, sleep=time.sleep):
    kill(own, number)
    sleep(0.01)
class Last:
    __del__ = interrupt
{}
def bench(rt):
    rt.copy_to_host(rt.zeros((64,)))
"""
LIMIT = [(), ("--timeout", "1000 s")]


def called(folder: Path, before: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, in which something happens before."""
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    program = [sys.executable, "-c", MAIN.format(before), *args]
    return subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("limit", LIMIT)
@pytest.mark.parametrize("before", [LOADING, STARTING], ids=["loading", "starting"])
def test_ctrl_c_before_the_command_has_begun_is_a_sentence(tmp_path: Path, before: str, limit: tuple[str, ...]) -> None:
    """With --json an object, too."""
    told = "interrupted while loading kernbench."
    for json_option in ((), ("--json",)):
        done = called(tmp_path, before, "run", "gemm", *json_option, *limit)
        assert (done.returncode, done.stderr) == (130, f"error: {told}\n")
        found = {"schema": "kernbench.error/1", "exit_code": 130, "problems": [told]}
        assert (json.loads(done.stdout) if json_option else done.stdout) == (found if json_option else "")


def test_a_program_that_ignores_ctrl_c_does_so_while_it_is_loaded(tmp_path: Path) -> None:
    """As in the background of a shell."""
    ignore = "signal.signal(signal.SIGINT, signal.SIG_IGN)"
    done = called(tmp_path, f"{ignore}\n{LOADING}", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("kernbench, version ") or done.stdout.startswith("kernbench ")


@pytest.mark.parametrize(
    ("last", "limit", "code"),
    [
        ("atexit.register(interrupt)", LIMIT[0], 130),
        ("last = Last()", LIMIT[0], 0),
        ("atexit.register(interrupt)", LIMIT[1], 130),
        ("last = Last()", LIMIT[1], 0),
    ],
)
def test_ctrl_c_behind_the_end_has_no_word(tmp_path: Path, last: str, limit: tuple[str, ...], code: int) -> None:
    """What the program runs at its end is cut short; the end of Python itself, or of a process that is kept, is not."""
    (tmp_path / "k.py").write_text(BENCH.format(last))
    done = called(tmp_path, "", "run", "k.py", "--topology", "tiny", "-q", *limit)
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.startswith("k on tiny: ") and done.stdout.count("\n") == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
