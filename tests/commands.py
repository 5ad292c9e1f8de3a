"""The whole command as a process of its own, for tests of what it prints and leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

REPO = Path(__file__).parents[1]
COMMAND = (
    "import sys; from kernbench_core.cli import main; from kernbench_core.plugins import load_plugins, own_plugins; "
    "sys.exit(main(sys.argv[1:], load_plugins(own_plugins(), "
    "installed=False)))"
)

Run = Callable[..., subprocess.CompletedProcess[str]]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(REPO), **more}


def kernbench(*args: str, **more: str) -> subprocess.CompletedProcess[str]:
    command: Sequence[str] = [sys.executable, "-c", COMMAND, *args]
    return subprocess.run(command, env=environment(**more), capture_output=True, text=True, check=False)
