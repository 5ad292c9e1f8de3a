"""What records runs, and times recordings on other machines by an engine in C++."""

from __future__ import annotations

from kernbench_core.plugin import RUN
from kernbench_core.plugins import CommandEntry, RunPartEntry

HERE = "kernbench_builtin.native"

#: The version of the hooks that this module is written for.
kernbench_api = 1


def kernbench_run_parts() -> list[RunPartEntry]:
    """Return the parts of runs."""
    told = "Whether both engines give the same times, and what was recorded."
    return [RunPartEntry("native", f"{HERE}.part:NativePart", told)]


def kernbench_commands() -> list[CommandEntry]:
    """Return the commands."""
    told = "Say what a recorded run would gain if a resource were faster."
    return [CommandEntry("what-if", f"{HERE}.command:what_if", told, RUN)]
