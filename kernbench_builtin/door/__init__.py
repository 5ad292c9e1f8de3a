"""Run kernels and collectives on simulated machines: `import kernbench as kb; kb.run("gemm", verify_data=True)`.

What users call, from all packages; a name is imported when it is first asked for. Plug-ins import `kernbench_core`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernbench_builtin.checks.budgets.fixture import KernbenchFixture as KernbenchFixture
    from kernbench_builtin.compare import compare as compare
    from kernbench_builtin.compare.reruns import rerun as rerun
    from kernbench_builtin.machines.drawing.machine import draw_machine as draw_machine
    from kernbench_builtin.sizes.decorator import sizes_from as sizes_from
    from kernbench_builtin.sweeps import SweepResult as SweepResult
    from kernbench_builtin.sweeps import sweep as sweep
    from kernbench_builtin.triton.session import triton as triton
    from kernbench_ccl.measure import time_collective as time_collective
    from kernbench_core import ConfigError as ConfigError
    from kernbench_core import DataExecutor as DataExecutor
    from kernbench_core import GraphEngine as GraphEngine
    from kernbench_core import Interleave as Interleave
    from kernbench_core import KernbenchError as KernbenchError
    from kernbench_core import KernelError as KernelError
    from kernbench_core import Replicate as Replicate
    from kernbench_core import RunResult as RunResult
    from kernbench_core import Shard as Shard
    from kernbench_core import UsageError as UsageError
    from kernbench_core import __version__ as __version__
    from kernbench_core import compile_topology as compile_topology
    from kernbench_core import depends as depends
    from kernbench_core import load_plugins as load_plugins

    from .kernel_launch import launch as launch  # relative, as this folder is installed under another name
    from .runs import run as run

_PLACES = {
    "kernbench_core": "ConfigError DataExecutor GraphEngine Interleave KernbenchError KernelError Replicate RunResult "
    "Shard UsageError __version__ compile_topology depends load_plugins",
    "kernbench_builtin.machines.drawing.machine": "draw_machine",
    "kernbench_builtin.compare": "compare",
    "kernbench_builtin.compare.reruns": "rerun",
    "kernbench_builtin.checks.budgets.fixture": "KernbenchFixture",
    ".kernel_launch": "launch",
    ".runs": "run",
    "kernbench_builtin.sizes.decorator": "sizes_from",
    "kernbench_builtin.sweeps": "SweepResult sweep",
    "kernbench_builtin.triton.session": "triton",
    "kernbench_ccl.measure": "time_collective",
}
_PLACE = {name: module for module, names in _PLACES.items() for name in names.split()}
__all__ = sorted(_PLACE)


if not TYPE_CHECKING:  # type checkers know the names, and refuse all others

    def __getattr__(name: str) -> Any:
        if name not in _PLACE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import kernbench_core

        found = getattr(importlib.import_module(_PLACE[name], __name__), name)
        kernbench_core.show_pictures()
        return found


def __dir__() -> list[str]:
    return __all__
