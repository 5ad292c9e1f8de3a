"""The contract of a format of measurements, and what helps to read one: CSVs with every fault at its line.

In: the text of a log. Out: rows, the parameters that they tell of, and what a machine takes for each. Plug-ins
implement it, `kernbench calibrate` calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_core.calibration.contract import Calibrator as Calibrator
    from kernbench_core.calibration.contract import LogOptions as LogOptions
    from kernbench_core.calibration.contract import LogRow as LogRow
    from kernbench_core.calibration.contract import MachineChoice as MachineChoice
    from kernbench_core.calibration.contract import SimulatedRow as SimulatedRow
    from kernbench_core.calibration.contract import Unknown as Unknown
    from kernbench_core.calibration.csv_log import LEAST_NS as LEAST_NS
    from kernbench_core.calibration.csv_log import CsvForm as CsvForm

__getattr__ = door(
    __name__,
    {
        "Calibrator": "contract",
        "CsvForm": "csv_log",
        "LEAST_NS": "csv_log",
        "LogOptions": "contract",
        "LogRow": "contract",
        "MachineChoice": "contract",
        "SimulatedRow": "contract",
        "Unknown": "contract",
    },
)
