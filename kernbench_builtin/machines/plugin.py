"""What the machines offer: kinds of machine, shapes of networks, what they did, and the commands that show them."""

from __future__ import annotations

from kernbench_core.plugin import MACHINES, SEE
from kernbench_core.plugins import CommandEntry, MachineEntry, NetworkEntry, RunPartEntry

HERE = "kernbench_builtin.machines"
SHAPES, SHOWN = f"{HERE}.network_shapes", f"{HERE}.cli"

#: The version of the hooks that this module is written for.
kernbench_api = 1


def kernbench_commands() -> list[CommandEntry]:
    """Return the commands, in the order of the help."""
    return [
        CommandEntry("list", f"{SHOWN}.catalogue:list_benches", "List the benches, or describe one.", SEE),
        CommandEntry(
            "components", f"{SHOWN}.catalogue:components", "List the hardware models, or describe one.", MACHINES
        ),
        CommandEntry("completion", f"{SHOWN}.completion_script:completion", "Print a completion script.", SEE),
        CommandEntry("topology", f"{SHOWN}.topology:topology", "Show machines, and check configurations.", MACHINES),
    ]


def kernbench_run_parts() -> list[RunPartEntry]:
    """Return what says what was done where, and which machine is meant."""
    sentence = "Launches, links, components, lines and ops in numbers."
    return [
        RunPartEntry("figures", f"{HERE}.figures.part:FiguresPart", sentence),
        RunPartEntry("project", f"{SHOWN}.project:ProjectPart", "The machine of a project, where none is named."),
    ]


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
    system, further = f"{HERE}.packages:PACKAGES", ("host", "sip", "cube", "pe")
    return [
        MachineEntry("system", system, "A host and packages of PEs, which kernels run on.", further),
        MachineEntry("mesh", f"{HERE}.mesh:MESH", "Routers in rows and columns, to drive synthetic traffic over."),
    ]
