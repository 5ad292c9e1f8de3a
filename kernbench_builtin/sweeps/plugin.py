"""What runs many times: a command with the pages of its folders, and a part of runs."""

from __future__ import annotations

from kernbench_core.plugin import RUN
from kernbench_core.plugins import CommandEntry, FolderEntry, RunPartEntry

HERE = "kernbench_builtin.sweeps"

#: The version of the hooks that this module is written for.
kernbench_api = 1


def kernbench_commands() -> list[CommandEntry]:
    """Return the command."""
    return [
        CommandEntry("sweep", f"{HERE}.cli.command:sweep", "Run a bench over many machines and parameters.", RUN)
    ]


def kernbench_folders() -> list[FolderEntry]:
    """Return what pages show besides runs."""
    return [FolderEntry("sweep", f"{HERE}.pages.folder:SAVED", "Folders of sweeps.")]


def kernbench_run_parts() -> list[RunPartEntry]:
    """Return the part of runs."""
    return [RunPartEntry("shake", f"{HERE}.shake:ShakePart", "How much the time says: median and spread.")]
