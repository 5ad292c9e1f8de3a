"""What runs a graph: components and wires are built, events happen within limits, faults become sentences.

In: a graph and its components. Out: events in order, and the lower bounds to hold them against. The host's session
calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_core.engine.bound import formula_latency as formula_latency
    from kernbench_core.engine.engine import Engine as Engine
    from kernbench_core.engine.engine import RunObserver as RunObserver
    from kernbench_core.engine.faults import component_error as component_error
    from kernbench_core.engine.hardware import ComponentClasses as ComponentClasses
    from kernbench_core.engine.hardware import Hardware as Hardware
    from kernbench_core.engine.watchdog import Limits as Limits
    from kernbench_core.engine.watchdog import Progress as Progress
    from kernbench_core.engine.watchdog import Watchdog as Watchdog

__getattr__ = door(__name__)
