"""`kernbench ccl`: the command that times, lists, checks and begins collective algorithms.

In: arguments. Out: tables, or JSON, and an exit code. The shell of `kernbench` calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_ccl.cli.group import ccl as ccl

__getattr__ = door(__name__)
