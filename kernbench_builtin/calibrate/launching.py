"""What calibrators of launched kernels share: a compiled machine, and the time of a launch as the host sees it."""

from __future__ import annotations

from collections.abc import Callable

from kernbench_core.calibration import MachineChoice, Unknown
from kernbench_core.graph import Graph
from kernbench_core.host import GraphEngine, Runtime
from kernbench_core.plugins import Plugins
from kernbench_core.runs import configure
from kernbench_core.topology import compile_topology, require_kernels

LAUNCH_STEPS = 2.0
"""How often the io_cpu's overhead is in a launch: it sends the launch on, and the answer back."""

LAUNCH_OVERHEAD = Unknown(
    "launch-overhead",
    "components.io_cpu.params.overhead",
    "time",
    0.0,
    50e3,
    "from none to five times the 10 us of a launch through a slow driver [unverified]",
    "small launches (products or copies d2d of some KiB), where the launch itself decides",
)


def compiled(plugins: Plugins, machine: MachineChoice) -> Graph:
    """Compile a machine; raise ConfigError with everything that is wrong."""
    config = configure(plugins, machine.topology, None, machine.sets)
    require_kernels(config, plugins.machines, "run measurements")
    return compile_topology(config, plugins)


def launched_ns(graph: Graph, plugins: Plugins, bench: Callable[[Runtime], None]) -> float:
    """Return how long the last launch of a host program took on the first package, from its request to the answer."""
    engine = GraphEngine(graph, plugins.components, data=False, log=False, device="sip:0", plugins=plugins)
    engine.run(bench)
    request = engine.shared.launches[-1].request
    assert request.response is not None
    return float(request.response.completed_ns - request.born)
