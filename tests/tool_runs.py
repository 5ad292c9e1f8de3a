"""What `python tools/NAME.py` does, in this process."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[1] / "tools"


def run_tool(name: str, *arguments: str) -> int:
    """Run tools/NAME.py as the program, and return its exit code; what it imports is found beside it, as ever."""
    file = str(TOOLS / f"{name}.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [file, *arguments])
        patch.setattr(sys, "path", [str(TOOLS), *sys.path])
        try:
            runpy.run_path(file, run_name="__main__")
        except SystemExit as end:
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)
            return end.code if isinstance(end.code, int) else int(bool(end.code))
    return 0
