"""The hooks of a plug-in: each is called once, at start-up, and returns the entries that the plug-in offers.

A plug-in is a module with one plain function for each hook it needs, named as here and without
arguments. Hooks are recognised by their `kernbench_` prefix: no decorator is needed. `load_plugins`
calls them, in no order that a plug-in may rely on, and freezes what they return into registries.
Import nothing heavy in a plug-in module: entries name what they offer as `"module:attr"`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pluggy

from kernbench_core.plugins import registry

PREFIX = "kernbench_"
hookspec = pluggy.HookspecMarker("kernbench")


@hookspec
def kernbench_components() -> Sequence[registry.ComponentEntry]:  # type: ignore[empty-body]
    """Return the hardware models, named `vendor.thing` with the plug-in's entry-point name as vendor."""


@hookspec
def kernbench_benches() -> Sequence[registry.BenchEntry]:  # type: ignore[empty-body]
    """Return the benches that `kernbench run NAME` finds and `kernbench list` prints; names are bare."""


@hookspec
def kernbench_programs() -> Sequence[registry.ProgramEntry]:  # type: ignore[empty-body]
    """Return the kinds of program that `kernbench run FILE:NAME` and `kb.launch` run; names are bare."""


@hookspec
def kernbench_topologies() -> Sequence[registry.TopologyEntry]:  # type: ignore[empty-body]
    """Return the topology presets that `--topology NAME` finds; names are bare."""


@hookspec
def kernbench_networks() -> Sequence[registry.NetworkEntry]:  # type: ignore[empty-body]
    """Return the shapes of the scale-up network that `system.network.topology` finds, named `vendor.thing`."""


@hookspec
def kernbench_machines() -> Sequence[registry.MachineEntry]:  # type: ignore[empty-body]
    """Return the kinds of machine, each named as the section of a configuration that describes it."""


@hookspec
def kernbench_exporters() -> Sequence[registry.ExporterEntry]:  # type: ignore[empty-body]
    """Return the file formats of `--trace FILE`, each with the suffixes of FILE that choose it."""


@hookspec
def kernbench_ops() -> Sequence[registry.OpEntry]:  # type: ignore[empty-body]
    """Return the functions by which phase 2 computes the plug-in's own messages, by their op_name."""


@hookspec
def kernbench_algorithms() -> Sequence[registry.AlgorithmEntry]:  # type: ignore[empty-body]
    """Return the collective algorithms, named `vendor.thing`."""


@hookspec
def kernbench_collectives() -> Sequence[registry.CollectiveEntry]:  # type: ignore[empty-body]
    """Return the collectives, of which algorithms do one each; names are bare."""


@hookspec
def kernbench_commands() -> Sequence[registry.CommandEntry]:  # type: ignore[empty-body]
    """Return click commands that become sub-commands of `kernbench`; names are bare."""


@hookspec
def kernbench_calibrators() -> Sequence[registry.CalibratorEntry]:  # type: ignore[empty-body]
    """Return the formats of measurements that `kernbench calibrate` reads; names are bare."""


@hookspec
def kernbench_report_sections() -> Sequence[registry.ReportSectionEntry]:  # type: ignore[empty-body]
    """Return the sections of the HTML report; names are bare."""


@hookspec
def kernbench_kits() -> Sequence[registry.KitEntry]:  # type: ignore[empty-body]
    """Return the kits of checks of `kernbench plugins check`, each named as the sort of entries that it checks."""


@hookspec
def kernbench_run_parts() -> Sequence[registry.RunPartEntry]:  # type: ignore[empty-body]
    """Return what runs may be asked for besides their times; names are bare, and attributes of results."""


@hookspec
def kernbench_folders() -> Sequence[registry.FolderEntry]:  # type: ignore[empty-body]
    """Return what the pages of saved things show besides runs; names are bare."""


@hookspec
def kernbench_pictures() -> Sequence[registry.PictureEntry]:  # type: ignore[empty-body]
    """Return what draws things for notebooks; names are bare."""
