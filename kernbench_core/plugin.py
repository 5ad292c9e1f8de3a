"""What core itself registers, by the hooks that every plug-in has."""

from __future__ import annotations

from typing import Any

from kernbench_core.plugins import BackendEntry, CommandEntry, ProgramEntry, points

CLI = "kernbench_core.cli"
PLUGINS = f"{CLI}.plugin_list"
PANELS = RUN, MACHINES, SEE = "Run and compare", "Machines", "Look up"

#: The version of the hooks that this module is written for.
kernbench_api = 1


def kernbench_points() -> list[points.Point[Any]]:
    """Return the sorts of entries that core asks for."""
    return [
        points.COMPONENTS, points.BENCHES, points.PROGRAMS, points.TOPOLOGIES, points.NETWORKS, points.MACHINES,
        points.OPS, points.LANGUAGE, points.BACKENDS, points.COMMANDS, points.RUN_PARTS, points.DIAGNOSES,
        points.PICTURES,
    ]  # fmt: skip


def kernbench_commands() -> list[CommandEntry]:
    """Return the commands, in the order of the help."""
    return [
        CommandEntry("run", f"{CLI}.run:run", "Run a bench: how long it takes, why, and whether it is right.", RUN),
        CommandEntry("plugins", f"{PLUGINS}:plugin_group", "List, describe, check and write plug-ins.", SEE),
        CommandEntry("plugins list", f"{PLUGINS}:list_plugins", "List the plug-ins, and why any is left out."),
    ]


def kernbench_programs() -> list[ProgramEntry]:
    """Return the kinds of program, beside benches."""
    return [ProgramEntry("kernel", "kernbench_core.host.programs:KERNEL", "A kernel with a parameter tl, run alone.")]


def kernbench_backends() -> list[BackendEntry]:
    """Return what computes the data where nobody asks for something else."""
    return [BackendEntry("numpy", "kernbench_core.compute.backends:Backend", "numpy, on the CPU.")]
