"""What keeps results for the next time: a command, and a part of runs."""

from __future__ import annotations

from kernbench_core.plugin import SEE
from kernbench_core.plugins import CommandEntry, RunPartEntry

#: The version of the hooks that this module is written for.
kernbench_api = 1


def kernbench_commands() -> list[CommandEntry]:
    """Return the command."""
    return [CommandEntry("cache", f"{__package__}.command:cache_group", "List, show and remove cached results.", SEE)]


def kernbench_run_parts() -> list[RunPartEntry]:
    """Return the part of runs."""
    return [RunPartEntry("cached", f"{__package__}.part:CachePart", "Results that are kept for the next time.")]
