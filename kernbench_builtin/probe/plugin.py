"""What measures the machine itself: a command."""

from __future__ import annotations

from kernbench_core.plugin import MACHINES
from kernbench_core.plugins import CommandEntry

HERE = "kernbench_builtin.probe"

#: The version of the hooks that this module is written for.
kernbench_api = 1


def kernbench_commands() -> list[CommandEntry]:
    """Return the command."""
    return [
        CommandEntry(
            "probe",
            f"{HERE}.command:probe",
            "Measure the machine itself: how far its memories are, what saturates first.",
            MACHINES,
        )
    ]
