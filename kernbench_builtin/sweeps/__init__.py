"""Many runs of one bench over a space of machines and parameters: planned, run in parallel, kept, and ranked.

In: axes, constraints and objectives. Out: a folder with a record of each point, from which a sweep goes on, its table
and its page. The command line and notebooks call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_builtin.sweeps.axes import Axis as Axis
    from kernbench_builtin.sweeps.call import sweep as sweep
    from kernbench_builtin.sweeps.drive import carry_out as carry_out
    from kernbench_builtin.sweeps.executors.local import LocalExecutor as LocalExecutor
    from kernbench_builtin.sweeps.folder import SweepFolder as SweepFolder
    from kernbench_builtin.sweeps.folder import open_sweep as open_sweep
    from kernbench_builtin.sweeps.folder import read_sweep as read_sweep
    from kernbench_builtin.sweeps.pages.page import sweep_page as sweep_page
    from kernbench_builtin.sweeps.plan import SweepPlan as SweepPlan
    from kernbench_builtin.sweeps.points import SweepPoint as SweepPoint
    from kernbench_builtin.sweeps.points import points_of as points_of
    from kernbench_builtin.sweeps.results import SweepResult as SweepResult
    from kernbench_builtin.sweeps.sweeping import planned as planned
    from kernbench_builtin.sweeps.sweeping import run_planned as run_planned

__getattr__ = door(__name__)
