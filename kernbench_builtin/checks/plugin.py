"""What checks offer: kits for the sorts of entries that core knows, and the commands that look into a plug-in."""

from __future__ import annotations

from typing import Any, Final

from kernbench_core.plugins import CommandEntry, KitEntry, Point

HERE = "kernbench_builtin.checks"

#: The version of the hooks that this module is written for.
kernbench_api = 1

KITS: Final = Point(
    KitEntry,
    "Return the kits of checks of `kernbench plugins check`, each named as the sort of entries that it checks.",
)


def kernbench_points() -> list[Point[Any]]:
    """Return the sort of entries that kits are."""
    return [KITS]


def kernbench_commands() -> list[CommandEntry]:
    """Return the commands of the group `plugins` that look into one."""
    return [
        CommandEntry("plugins show", f"{HERE}.command:show", "Describe a plug-in: what it registers, and its models."),
        CommandEntry("plugins check", f"{HERE}.command:check", "Check what a plug-in registers."),
        CommandEntry("plugins new", f"{HERE}.command:new", "Write a plug-in to start from."),
    ]


def kernbench_kits() -> list[KitEntry]:
    """Return the kits of checks."""
    return [
        KitEntry("components", f"{HERE}.components.kit:KIT", "Hardware models."),
        KitEntry("networks", f"{HERE}.network_checks:KIT", "Shapes of the scale-up network."),
        KitEntry("memory_standards", f"{HERE}.memory_checks:KIT", "Standards of memories."),
        KitEntry("ops", f"{HERE}.op_checks:KIT", "Math ops that kernels call by their names."),
        KitEntry("run_parts", f"{HERE}.run_part_checks:KIT", "Parts of runs."),
    ]
