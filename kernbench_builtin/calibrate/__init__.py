"""Fit a machine's parameters to measurements, and say how far the fitted machine is from each of them.

In: logs in the formats that plug-ins register, and a machine. Out: an overlay of the machine with the fitted values,
and the error of its simulation per row. `kernbench calibrate` calls it, and the comparison with published systems.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_builtin.calibrate.calibration import Calibrated as Calibrated
    from kernbench_builtin.calibrate.calibration import calibrate as calibrate
    from kernbench_builtin.calibrate.calibration import open_logs as open_logs
    from kernbench_builtin.calibrate.systems import SYSTEMS as SYSTEMS
    from kernbench_builtin.calibrate.systems import SystemRow as SystemRow
    from kernbench_builtin.calibrate.systems import compare_system as compare_system

__getattr__ = door(__name__)
