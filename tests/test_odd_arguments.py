"""Whatever the compiled functions of all packages are called with, the process lives: an exception, or an answer."""

from __future__ import annotations

import importlib
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kernbench_core.compiled import is_compiled
from kernbench_core.compiled.form import _ROOT, built

ODD: list[tuple[Any, ...]] = [
    (), (None,), (None,) * 2, (None,) * 3, (None,) * 4, (None, 0.0, 0.0), (-1,), (-1, -1), ((),), (0,), (2**62,),
    ("x",),
]  # fmt: skip


def functions() -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield all functions and classes of compiled modules."""
    for name in built(_ROOT):
        module = importlib.import_module(name)
        for each, found in sorted(vars(module).items()):
            if callable(found) and getattr(found, "__module__", None) == name and not each.startswith("__"):
                yield f"{name}.{each}", found


def killed_by(function: Callable[..., object], arguments: list[tuple[Any, ...]]) -> str | None:
    """Call a function in a process of its own with one after another; return what killed that, None where it ended."""
    child = os.fork()
    if not child:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        for given in arguments:
            signal.alarm(5)  # some wait for what nobody does
            try:
                repr(function(*given))
            except BaseException:
                continue
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    ended = not os.WIFSIGNALED(status) or os.WTERMSIG(status) == signal.SIGALRM
    return None if ended else signal.Signals(os.WTERMSIG(status)).name


@pytest.mark.skipif(not is_compiled(), reason="nothing is compiled")
def test_no_function_of_a_compiled_module_kills_its_process() -> None:
    """With None, with numbers that are out of range, and with too few arguments."""
    killed = {name: how for name, found in functions() if (how := killed_by(found, ODD)) is not None}
    assert killed == {}
