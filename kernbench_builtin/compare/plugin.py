"""What comparing offers: the command `diff`."""

from __future__ import annotations

from kernbench_core.plugin import RUN
from kernbench_core.plugins import CommandEntry

#: The version of the hooks that this module is written for.
kernbench_api = 1


def kernbench_commands() -> list[CommandEntry]:
    """Return the command."""
    target = "kernbench_builtin.compare.command:diff"
    return [CommandEntry("diff", target, "Tell what moved from one run to another, and why.", RUN)]
