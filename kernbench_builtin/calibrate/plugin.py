"""What fits a machine to measurements: a command, and formats of logs, which other plug-ins may add to."""

from __future__ import annotations

from typing import Any, Final

from kernbench_core.plugin import MACHINES
from kernbench_core.plugins import CalibratorEntry, CommandEntry, Point

HERE = "kernbench_builtin.calibrate"

#: The version of the hooks that this module is written for.
kernbench_api = 1

CALIBRATORS: Final = Point(
    CalibratorEntry, "Return the formats of measurements that `kernbench calibrate` reads; names are bare."
)


def kernbench_points() -> list[Point[Any]]:
    """Return the sort of entries that formats are."""
    return [CALIBRATORS]


def kernbench_commands() -> list[CommandEntry]:
    """Return the command."""
    return [
        CommandEntry(
            "calibrate",
            f"{HERE}.command:calibrate",
            "Fit a machine to measurements, or compare it with published figures.",
            MACHINES,
        )
    ]


def kernbench_calibrators() -> list[CalibratorEntry]:
    """Return the formats of measurements of one package."""
    return [
        CalibratorEntry("copies", f"{HERE}.copies:CopyLog", "A CSV of copies."),
        CalibratorEntry("gemm", f"{HERE}.gemm:GemmLog", "A CSV of matrix products."),
        CalibratorEntry("memory", f"{HERE}.memory:MemoryLog", "A CSV of memory accesses."),
    ]
