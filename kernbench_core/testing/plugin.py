"""The kits of checks that are there whatever a plug-in brings."""

from __future__ import annotations

from kernbench_core.plugins import KitEntry

HERE = "kernbench_core.testing"


def kernbench_kits() -> list[KitEntry]:
    """Return the kits of checks."""
    return [
        KitEntry("components", f"{HERE}.components.kit:KIT", "Hardware models."),
        KitEntry("networks", f"{HERE}.network_checks:KIT", "Shapes of the scale-up network."),
        KitEntry("ops", f"{HERE}.op_checks:KIT", "Math ops that kernels call by their names."),
    ]
