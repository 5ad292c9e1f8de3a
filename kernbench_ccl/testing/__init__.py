"""The kits of checks for collectives and their algorithms, which `kernbench plugins check` finds.

In: a registered algorithm or collective. Out: a verdict for each named check. `kernbench plugins check` and the tests
of plug-ins call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_ccl.testing.algorithm_under_test import AlgorithmUnderTest as AlgorithmUnderTest
    from kernbench_ccl.testing.collective_checks import CollectiveUnderTest as CollectiveUnderTest
    from kernbench_ccl.testing.kits import ALGORITHMS as ALGORITHMS
    from kernbench_ccl.testing.kits import COLLECTIVES as COLLECTIVES

__getattr__ = door(__name__)
