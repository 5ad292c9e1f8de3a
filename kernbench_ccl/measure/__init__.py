"""Time a collective on a machine of its own, check its data, and say what bound it.

In: a question and a machine. Out: rows of nccl-tests' table. `kernbench ccl COLLECTIVE` calls it, and programs by
`time_collective`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_ccl.measure.choice import Chooser as Chooser
    from kernbench_ccl.measure.choice import Question as Question
    from kernbench_ccl.measure.machine import Setup as Setup
    from kernbench_ccl.measure.machine import TimedMachine as TimedMachine
    from kernbench_ccl.measure.machine import machine_of as machine_of
    from kernbench_ccl.measure.sweep import Sweep as Sweep
    from kernbench_ccl.measure.sweep import time_collective as time_collective
    from kernbench_ccl.measure.table import SweepRow as SweepRow

__getattr__ = door(__name__)
