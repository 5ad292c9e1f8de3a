"""Which algorithm serves a call, and on which PEs and queues it runs.

In: `ccl.yaml`, measured tables, a call. Out: a launch. Distributed programs and measurements call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_ccl.plan.backend import plan_collective as plan_collective
    from kernbench_ccl.plan.configuration import CclConfig as CclConfig
    from kernbench_ccl.plan.configuration import Settings as Settings
    from kernbench_ccl.plan.configuration import load_ccl as load_ccl
    from kernbench_ccl.plan.groups import Group as Group
    from kernbench_ccl.plan.groups import make_group as make_group
    from kernbench_ccl.plan.selection import choose_algorithm as choose_algorithm
    from kernbench_ccl.plan.selection import machine_network as machine_network

__getattr__ = door(__name__)
