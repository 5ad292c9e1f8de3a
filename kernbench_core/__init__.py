"""Minimal framework: contracts, configuration, topology, engine, kernels, two phases and the command-line shell.

`import kernbench_core as kb; kb.run("gemm", verify_data=True)` is all that a notebook needs. The names
below are imported on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernbench_core.component import ComponentBase as ComponentBase
    from kernbench_core.compute.executor import DataExecutor as DataExecutor
    from kernbench_core.errors import ConfigError as ConfigError
    from kernbench_core.errors import KernbenchError as KernbenchError
    from kernbench_core.errors import KernelError as KernelError
    from kernbench_core.errors import UsageError as UsageError
    from kernbench_core.host.session import GraphEngine as GraphEngine
    from kernbench_core.memory.placement import Interleave as Interleave
    from kernbench_core.memory.placement import Replicate as Replicate
    from kernbench_core.memory.placement import Shard as Shard
    from kernbench_core.params import Param as Param
    from kernbench_core.plugins import load_plugins as load_plugins
    from kernbench_core.runs.bench_run import run as run
    from kernbench_core.runs.reruns import rerun as rerun
    from kernbench_core.runs.result import RunResult as RunResult
    from kernbench_core.topology.compilation import compile_topology as compile_topology
    from kernbench_core.version import __version__ as __version__

_EXPORTS = {
    "__version__": "version",
    "ComponentBase": "component",
    "ConfigError": "errors",
    "DataExecutor": "compute.executor",
    "GraphEngine": "host.session",
    "Interleave": "memory.placement",
    "KernbenchError": "errors",
    "KernelError": "errors",
    "Param": "params",
    "Replicate": "memory.placement",
    "RunResult": "runs.result",
    "Shard": "memory.placement",
    "UsageError": "errors",
    "compile_topology": "topology.compilation",
    "load_plugins": "plugins",
    "rerun": "runs.reruns",
    "run": "runs.bench_run",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_EXPORTS[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS})
