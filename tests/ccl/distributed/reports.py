"""Reports of ranks that wait for ever, for tests of what they say, and lines of programs as reports name them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import kernbench_ccl.distributed as dist
import kernbench_core as kb
from kernbench_core.errors import DeadlockError
from tests.ccl.ranks import PLUGINS


def report(program: Callable[..., Any], world: int = 3, *settings: str) -> list[str]:
    """Return the lines of the report of a run in which ranks wait for ever."""
    with pytest.raises(DeadlockError) as caught:
        kb.run(lambda rt: dist.spawn(program), "tiny", set=[f"system.sips={world}", *settings], plugins=PLUGINS)
    assert caught.value.exit_code == 4
    return str(caught.value).splitlines()


def line(program: Callable[..., Any], text: str) -> str:
    """Return `file.py:LINE` of the line of a function that contains a text."""
    source, first = inspect.getsourcelines(program)
    (number,) = [first + i for i, words in enumerate(source) if text in words]
    return f"{inspect.unwrap(program).__code__.co_filename}:{number}"


def host_lines(lines: list[str]) -> list[str]:
    """Return what the programs of the ranks wait for, without how long, each on one line with why."""
    end = lines.index("  kernels that wait:") if "  kernels that wait:" in lines else len(lines)
    found: list[str] = []
    for words in lines[1:end]:
        if words.startswith("    "):
            found[-1] += f": {words.strip()}"
        else:
            found.append(words.rpartition(", for ")[0] or words)
    return found
