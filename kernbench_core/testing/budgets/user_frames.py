"""Tracebacks of the user's own lines: what lies between them, and below, says nothing to an author of tests."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Final

from kernbench_core.errors import KernbenchError

_FRAMEWORK: Final = ("kernbench_core", "simpy")


def of_user_frames(error: KernbenchError) -> KernbenchError:
    """Return the error with the lines of tests, benches and kernels alone; those of its cause come last."""
    found: TracebackType | None = None
    for each in reversed([*_own(error), *(() if error.__cause__ is None else _own(error.__cause__))]):
        found = TracebackType(found, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return error.with_traceback(found)


def _own(error: BaseException) -> Iterator[TracebackType]:
    at = error.__traceback__
    while at is not None:
        if str(at.tb_frame.f_globals.get("__name__", "")).partition(".")[0] not in _FRAMEWORK:
            yield at
        at = at.tb_next
