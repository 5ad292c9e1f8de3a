"""What plug-ins offer: sorts of entries, those of each plug-in, checked, and the registries that hold them by name.

In: entry points of installed packages, files, and what the environment says. Out: `Plugins`, which never change. The
command line and whoever runs anything call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_core.plugins.entries import CORE as CORE
    from kernbench_core.plugins.entries import AlgorithmEntry as AlgorithmEntry
    from kernbench_core.plugins.entries import BackendEntry as BackendEntry
    from kernbench_core.plugins.entries import BenchEntry as BenchEntry
    from kernbench_core.plugins.entries import CalibratorEntry as CalibratorEntry
    from kernbench_core.plugins.entries import CollectiveEntry as CollectiveEntry
    from kernbench_core.plugins.entries import CommandEntry as CommandEntry
    from kernbench_core.plugins.entries import ComponentEntry as ComponentEntry
    from kernbench_core.plugins.entries import DiagnosisEntry as DiagnosisEntry
    from kernbench_core.plugins.entries import Entry as Entry
    from kernbench_core.plugins.entries import ExporterEntry as ExporterEntry
    from kernbench_core.plugins.entries import FolderEntry as FolderEntry
    from kernbench_core.plugins.entries import KitEntry as KitEntry
    from kernbench_core.plugins.entries import LanguageEntry as LanguageEntry
    from kernbench_core.plugins.entries import MachineEntry as MachineEntry
    from kernbench_core.plugins.entries import MemoryStandardEntry as MemoryStandardEntry
    from kernbench_core.plugins.entries import NetworkEntry as NetworkEntry
    from kernbench_core.plugins.entries import OpEntry as OpEntry
    from kernbench_core.plugins.entries import PictureEntry as PictureEntry
    from kernbench_core.plugins.entries import ProgramEntry as ProgramEntry
    from kernbench_core.plugins.entries import Provider as Provider
    from kernbench_core.plugins.entries import ReportSectionEntry as ReportSectionEntry
    from kernbench_core.plugins.entries import RunPartEntry as RunPartEntry
    from kernbench_core.plugins.entries import TopologyEntry as TopologyEntry
    from kernbench_core.plugins.installed import own_plugins as own_plugins
    from kernbench_core.plugins.loading import Plugins as Plugins
    from kernbench_core.plugins.loading import PluginSource as PluginSource
    from kernbench_core.plugins.loading import load_plugins as load_plugins
    from kernbench_core.plugins.points import DIAGNOSES as DIAGNOSES
    from kernbench_core.plugins.points import LANGUAGE as LANGUAGE
    from kernbench_core.plugins.points import PICTURES as PICTURES
    from kernbench_core.plugins.points import RUN_PARTS as RUN_PARTS
    from kernbench_core.plugins.points import Point as Point
    from kernbench_core.plugins.registry import ComponentRegistry as ComponentRegistry
    from kernbench_core.plugins.registry import DefaultsRegistry as DefaultsRegistry
    from kernbench_core.plugins.registry import MachineRegistry as MachineRegistry
    from kernbench_core.plugins.registry import NetworkRegistry as NetworkRegistry
    from kernbench_core.plugins.registry import PluginFailure as PluginFailure
    from kernbench_core.plugins.registry import Registry as Registry

__getattr__ = door(__name__)
