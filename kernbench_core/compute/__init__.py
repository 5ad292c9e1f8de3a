"""Phase 2: compute what the op log says, outside the simulation, and check the results.

In: an op log and a memory store, also saved ones. Out: arrays, and the verdict on what was expected. Imports nothing of
phase 1; runs and saved logs call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_core.compute.backends import Backend as Backend
    from kernbench_core.compute.executor import DataExecutor as DataExecutor
    from kernbench_core.compute.functions import Scope as Scope
    from kernbench_core.compute.functions import evaluate as evaluate
    from kernbench_core.compute.promotion import meet_all as meet_all

__getattr__ = door(__name__)
