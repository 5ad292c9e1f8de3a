"""Prove an algorithm without timing it: its own kernels, on symbolic data.

In: an algorithm, and for which ranks, networks and counts. Out: proofs, or faults with rank, step and kernel line.
`kernbench ccl check` calls it, and measurements that have wrong data to explain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_ccl.prove.algorithm_check import Checked as Checked
    from kernbench_ccl.prove.algorithm_check import Ranks as Ranks
    from kernbench_ccl.prove.algorithm_check import Wanted as Wanted
    from kernbench_ccl.prove.algorithm_check import check as check
    from kernbench_ccl.prove.algorithm_check import network_of as network_of
    from kernbench_ccl.prove.check_pool import check_all as check_all
    from kernbench_ccl.prove.proof_case import Fault as Fault

__getattr__ = door(__name__)
