"""The presets as machines: how large each is, and the smallest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kernbench_core.errors import KernbenchError
from kernbench_core.graph import Graph
from kernbench_core.plugins import Plugins
from kernbench_core.runs import configure
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.topology.design import Design, Machine
from kernbench_core.topology.machine_kinds import bare_section, kind_of

_SIZES: Final = ("sips", "cubes", "pes")


def sizes_of(plugins: Plugins, preset: str) -> Mapping[str, int]:
    """Return how many SIPs, cubes and PEs the machine of a preset has, all together; nothing for one without PEs.

    Raises:
        KernbenchError: the preset is at fault.
    """
    config = configure(plugins, preset)
    name, kind = kind_of(config, plugins.machines)
    if not kind.runs_kernels:
        return {}
    _, known = bare_section(config, name, plugins.machines)
    design = getattr(kind.read(known, plugins.networks), "design", None)
    if not isinstance(design, Design):  # the plan of a plug-in's kind is its own affair
        graph = compile_topology(config, plugins)
        assert isinstance(graph, Machine), "a kind that runs kernels makes a machine"
        design = graph.design
    counts: Iterable[int] = (design.sips, design.sips * design.cubes_per_sip, len(design.pes))
    return dict(zip(_SIZES, counts, strict=True))


def machines_by_size(plugins: Plugins) -> Iterator[tuple[str, Graph]]:
    """Yield the presets' machines, the smallest first and those without PEs last.

    Those that cannot be made are left out: they say so when they are asked for by name.
    """
    sizes: dict[str, int] = {}
    for preset in plugins.topologies:
        try:
            sizes[preset] = sizes_of(plugins, preset).get("pes", 0)
        except KernbenchError:
            continue
    for preset in sorted(sizes, key=lambda each: (sizes[each] == 0, sizes[each], each)):
        config = configure(plugins, preset)
        yield preset, compile_topology(config, plugins)
