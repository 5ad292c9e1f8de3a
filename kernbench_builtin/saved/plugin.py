"""What writes the folder of a run, for `--out`."""

from __future__ import annotations

from kernbench_core.plugins import RunPartEntry

#: The version of the hooks that this module is written for.
kernbench_api = 1


def kernbench_run_parts() -> list[RunPartEntry]:
    """Return who writes folders of runs."""
    return [RunPartEntry("folders", "kernbench_builtin.saved.part:Folders", "Write a run into a folder.")]
