"""What is read from saved runs: the commands `rerun`, `diff` and `explain`."""

from __future__ import annotations

from kernbench_core.plugin import RUN
from kernbench_core.plugins import CommandEntry

#: The version of the hooks that this module is written for.
kernbench_api = 1


def kernbench_commands() -> list[CommandEntry]:
    """Return the commands."""
    here = "kernbench_builtin.compare"
    return [
        CommandEntry("rerun", f"{here}.rerun_command:rerun", "Run a saved manifest again, and compare.", RUN),
        CommandEntry("diff", f"{here}.command:diff", "Compare two runs: what moved, and why.", RUN),
        CommandEntry(
            "explain", f"{here}.explain_command:explain", "Show what limits a saved run, and what to try.", RUN
        ),
    ]
