"""`kernbench ccl`: the command that times, lists, checks and begins collective algorithms.

In: arguments. Out: tables, or JSON, and an exit code. The shell of `kernbench` calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernbench_ccl.cli.group import ccl as ccl

__all__ = ["ccl"]


def __getattr__(name: str) -> Any:
    if name != "ccl":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kernbench_ccl.cli.group import ccl

    return ccl
