"""Minimal framework: contracts, configuration, topology, engine, kernels, two phases and the command-line shell.

Plug-ins and models import it; users import `kernbench`. The names below are imported on first use, so that importing
the package costs nothing. The docstring of each has an example (`help(kernbench_core.Param)`), which calls the package
`kb`. (pytest reads: PYTEST_DONT_REWRITE.)
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from kernbench_core.compiled.form import choose as _choose_form
from kernbench_core.package import door, exports

if TYPE_CHECKING:
    from kernbench_core.component import ComponentBase as ComponentBase
    from kernbench_core.compute.executor import DataExecutor as DataExecutor
    from kernbench_core.errors import ConfigError as ConfigError
    from kernbench_core.errors import KernbenchError as KernbenchError
    from kernbench_core.errors import KernelError as KernelError
    from kernbench_core.errors import UsageError as UsageError
    from kernbench_core.fabric import Fabric as Fabric
    from kernbench_core.graph import Node as Node
    from kernbench_core.host.bench import depends as depends
    from kernbench_core.host.session import GraphEngine as GraphEngine
    from kernbench_core.memory.placement import Interleave as Interleave
    from kernbench_core.memory.placement import Replicate as Replicate
    from kernbench_core.memory.placement import Shard as Shard
    from kernbench_core.messages import Command as Command
    from kernbench_core.messages import MsgBase as MsgBase
    from kernbench_core.package import __version__ as __version__
    from kernbench_core.params import Param as Param
    from kernbench_core.plugins import AlgorithmEntry as AlgorithmEntry
    from kernbench_core.plugins import BackendEntry as BackendEntry
    from kernbench_core.plugins import BenchEntry as BenchEntry
    from kernbench_core.plugins import CalibratorEntry as CalibratorEntry
    from kernbench_core.plugins import CollectiveEntry as CollectiveEntry
    from kernbench_core.plugins import CommandEntry as CommandEntry
    from kernbench_core.plugins import ComponentEntry as ComponentEntry
    from kernbench_core.plugins import DiagnosisEntry as DiagnosisEntry
    from kernbench_core.plugins import ExporterEntry as ExporterEntry
    from kernbench_core.plugins import FolderEntry as FolderEntry
    from kernbench_core.plugins import KitEntry as KitEntry
    from kernbench_core.plugins import LanguageEntry as LanguageEntry
    from kernbench_core.plugins import MachineEntry as MachineEntry
    from kernbench_core.plugins import MemoryStandardEntry as MemoryStandardEntry
    from kernbench_core.plugins import NetworkEntry as NetworkEntry
    from kernbench_core.plugins import OpEntry as OpEntry
    from kernbench_core.plugins import PictureEntry as PictureEntry
    from kernbench_core.plugins import ProgramEntry as ProgramEntry
    from kernbench_core.plugins import ReportSectionEntry as ReportSectionEntry
    from kernbench_core.plugins import RunPartEntry as RunPartEntry
    from kernbench_core.plugins import TopologyEntry as TopologyEntry
    from kernbench_core.plugins import load_plugins as load_plugins
    from kernbench_core.reporting import Stat as Stat
    from kernbench_core.runs.bench_run import run as run
    from kernbench_core.runs.result import RunResult as RunResult
    from kernbench_core.topology.compilation import compile_topology as compile_topology

_choose_form()

__all__ = sorted(exports(__name__))


def __getattr__(name: str) -> Any:
    found = door(__name__)(name)
    show_pictures()
    return found


def show_pictures() -> None:
    """Have notebooks show pictures of what was imported; the doors call it when they give a name."""
    notebook = sys.modules.get(f"{__name__}.process.notebook")
    if notebook is not None and notebook.Pictured.draw is None:
        notebook.Pictured.draw = _picture


def _picture(thing: object) -> str | None:
    """Draw something for a notebook: only then is what draws imported."""
    from kernbench_core.runs.parts import picture

    return picture(thing)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
