"""`kernbench topology list`: the presets, who brings each, and how large the machine is that it describes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import rich_click as click

from kernbench_core.cli.columns import table
from kernbench_core.cli.search import matching, nothing_found
from kernbench_core.errors import KernbenchError

if TYPE_CHECKING:
    from kernbench_core.cli.shell import Shell
    from kernbench_core.plugins import Plugins

_SIZES = ("sips", "cubes", "pes")


def list_presets(shell: Shell, name: str | None, as_json: bool) -> None:
    """Print the presets, or those that `name` may mean; warn of one that cannot be read, which has no sizes then."""
    from kernbench_core.runs.result import json_text

    presets = shell.plugins.topologies
    found = tuple(presets) if name is None else matching(name, presets)
    if not found:
        assert name is not None
        raise nothing_found("topology preset", name, presets)
    sizes = {each: _told_sizes(shell, each) for each in found}
    if as_json:
        listed = [
            {
                "name": each,
                "sentence": presets[each].sentence,
                "provider": str(presets.provider(each)),
                **{size: sizes[each].get(size) for size in _SIZES},
            }
            for each in found
        ]
        click.echo(json_text({"schema": "kernbench.topologies/1", "topologies": listed}))
        return
    table(
        ("preset", "SIPs", "cubes", "PEs", "what it is", "provider"),
        [
            (each, *(str(sizes[each].get(size, "-")) for size in _SIZES), presets[each].sentence,
             str(presets.provider(each)))
            for each in found
        ],
    )  # fmt: skip


def _told_sizes(shell: Shell, preset: str) -> Mapping[str, int]:
    try:
        return sizes_of(shell.plugins, preset)
    except KernbenchError as error:
        shell.warn(str(error))
        return {}


def sizes_of(plugins: Plugins, preset: str) -> Mapping[str, int]:
    """Return how many SIPs, cubes and PEs the machine of a preset has, all together; nothing for one without PEs.

    Raises:
        KernbenchError: the preset is at fault.
    """
    from kernbench_core.runs.bench_run import configure
    from kernbench_core.topology.compilation import compile_topology
    from kernbench_core.topology.design import Design, Machine
    from kernbench_core.topology.machine_kinds import kind_of

    config = configure(plugins, preset)
    _, kind = kind_of(config, plugins.machines)
    if not kind.runs_kernels:
        return {}
    design = getattr(kind.read(config, plugins.networks), "design", None)
    if not isinstance(design, Design):  # the plan of a plug-in's kind is its own affair
        graph = compile_topology(config, plugins.components, plugins.networks, plugins.machines)
        assert isinstance(graph, Machine), "a kind that runs kernels makes a machine"
        design = graph.design
    counts: Iterable[int] = (design.sips, design.sips * design.cubes_per_sip, len(design.pes))
    return dict(zip(_SIZES, counts, strict=True))
