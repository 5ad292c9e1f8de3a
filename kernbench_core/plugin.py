"""What core itself registers, by the hooks that every plug-in has."""

from __future__ import annotations

from typing import Any

from kernbench_core.plugins import BackendEntry, CommandEntry, MachineEntry, NetworkEntry, ProgramEntry, points

CLI = "kernbench_core.cli"
SHOWN = "kernbench_builtin.machines.cli"
PLUGINS = f"{CLI}.plugin_list"
SHAPES = "kernbench_builtin.machines.network_shapes"
RUN, SEE = "Run, and look at runs", "See what there is"

#: The further sections of a system.
PACKAGES = ("host", "sip", "cube", "pe")

#: The version of the hooks that this module is written for.
kernbench_api = 1


def kernbench_points() -> list[points.Point[Any]]:
    """Return the sorts of entries that core asks for."""
    return [
        points.COMPONENTS, points.BENCHES, points.PROGRAMS, points.TOPOLOGIES, points.NETWORKS, points.MACHINES,
        points.OPS, points.BACKENDS, points.COMMANDS, points.RUN_PARTS, points.PICTURES,
    ]  # fmt: skip


def kernbench_commands() -> list[CommandEntry]:
    """Return the commands, in the order of the help."""
    return [
        CommandEntry("run", f"{CLI}.run:run", "Run a bench: how long it takes, why, and whether it is right.", RUN),
        CommandEntry("rerun", f"{CLI}.run:rerun", "Run again what a manifest or a bundle describes.", RUN),
        CommandEntry("list", f"{SHOWN}.catalogue:list_benches", "List the benches, or describe one.", SEE),
        CommandEntry("components", f"{SHOWN}.catalogue:components", "List the hardware models, or describe one.", SEE),
        CommandEntry("topology", f"{SHOWN}.topology:topology", "Look at machines, and check configurations.", SEE),
        CommandEntry("plugins", f"{PLUGINS}:plugin_group", "Look at the plug-ins.", SEE),
        CommandEntry("plugins list", f"{PLUGINS}:list_plugins", "List them, those that are left out too, and why."),
    ]


def kernbench_programs() -> list[ProgramEntry]:
    """Return the kinds of program, beside benches."""
    return [ProgramEntry("kernel", "kernbench_core.host.programs:KERNEL", "A kernel with a parameter tl, run alone.")]


def kernbench_backends() -> list[BackendEntry]:
    """Return what computes the data where nobody asks for something else."""
    return [BackendEntry("numpy", "kernbench_core.compute.backends:Backend", "numpy, on the CPU.")]


def kernbench_networks() -> list[NetworkEntry]:
    """Return the shapes of the scale-up network."""
    return [
        NetworkEntry("ring", f"{SHAPES}:RING", "Each package is linked with the next, the last with the first."),
        NetworkEntry("mesh_2d", f"{SHAPES}:MESH_2D", "Columns and rows of packages, neighbours linked."),
        NetworkEntry("torus_2d", f"{SHAPES}:TORUS_2D", "A mesh whose columns and rows are closed to rings."),
        NetworkEntry("fully_connected", f"{SHAPES}:FULLY_CONNECTED", "Every two packages have a link."),
        NetworkEntry("switch", f"{SHAPES}:SWITCH", "Each package is linked with one switch."),
    ]


def kernbench_machines() -> list[MachineEntry]:
    """Return the kinds of machine."""
    system, mesh = "kernbench_builtin.machines.packages:PACKAGES", "kernbench_builtin.machines.mesh:MESH"
    return [
        MachineEntry("system", system, "A host and packages of PEs, which kernels run on.", PACKAGES),
        MachineEntry("mesh", mesh, "Routers in rows and columns, to drive synthetic traffic over."),
    ]
