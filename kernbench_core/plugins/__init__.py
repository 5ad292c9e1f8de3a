"""What plug-ins offer: sorts of entries, those of each plug-in, checked, and the registries that hold them by name.

In: entry points of installed packages, files, and what the environment says. Out: `Plugins`, which never change. The
command line and whoever runs anything call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_core.plugins.loading import Plugins as Plugins
    from kernbench_core.plugins.loading import PluginSource as PluginSource
    from kernbench_core.plugins.loading import load_plugins as load_plugins
    from kernbench_core.plugins.registry import CORE as CORE
    from kernbench_core.plugins.registry import AlgorithmEntry as AlgorithmEntry
    from kernbench_core.plugins.registry import BenchEntry as BenchEntry
    from kernbench_core.plugins.registry import CalibratorEntry as CalibratorEntry
    from kernbench_core.plugins.registry import CollectiveEntry as CollectiveEntry
    from kernbench_core.plugins.registry import CommandEntry as CommandEntry
    from kernbench_core.plugins.registry import CommandRegistry as CommandRegistry
    from kernbench_core.plugins.registry import ComponentEntry as ComponentEntry
    from kernbench_core.plugins.registry import ComponentRegistry as ComponentRegistry
    from kernbench_core.plugins.registry import Entry as Entry
    from kernbench_core.plugins.registry import ExporterEntry as ExporterEntry
    from kernbench_core.plugins.registry import FolderEntry as FolderEntry
    from kernbench_core.plugins.registry import KitEntry as KitEntry
    from kernbench_core.plugins.registry import MachineEntry as MachineEntry
    from kernbench_core.plugins.registry import MachineRegistry as MachineRegistry
    from kernbench_core.plugins.registry import NetworkEntry as NetworkEntry
    from kernbench_core.plugins.registry import NetworkRegistry as NetworkRegistry
    from kernbench_core.plugins.registry import OpEntry as OpEntry
    from kernbench_core.plugins.registry import PictureEntry as PictureEntry
    from kernbench_core.plugins.registry import PluginFailure as PluginFailure
    from kernbench_core.plugins.registry import ProgramEntry as ProgramEntry
    from kernbench_core.plugins.registry import Provider as Provider
    from kernbench_core.plugins.registry import Registry as Registry
    from kernbench_core.plugins.registry import ReportSectionEntry as ReportSectionEntry
    from kernbench_core.plugins.registry import RunPartEntry as RunPartEntry
    from kernbench_core.plugins.registry import TopologyEntry as TopologyEntry

__getattr__ = door(__name__)
