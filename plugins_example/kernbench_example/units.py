"""A command: how many nodes of a machine each hardware model serves."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import click

from kernbench_core.cli.options import JSON, TOPOLOGY

if TYPE_CHECKING:
    from kernbench_core.cli.shell import Shell


@click.command()
@TOPOLOGY
@JSON
@click.pass_obj
def units(shell: Shell, topology: str, as_json: bool) -> None:
    """Count the nodes of a machine by the model that serves them."""
    from kernbench_core.runs import configure
    from kernbench_core.topology import compile_topology

    plugins = shell.plugins
    config = configure(plugins, topology)
    graph = compile_topology(config, plugins)
    found = Counter((node.kind, node.impl) for node in graph.nodes.values())
    if as_json:
        rows = [{"kind": kind, "model": model, "nodes": count} for (kind, model), count in sorted(found.items())]
        click.echo(json.dumps({"schema": "example.units/1", "topology": topology, "units": rows}, indent=2))
        return
    wide = max(len(kind) for kind, _ in found)
    for (kind, model), count in sorted(found.items()):
        click.echo(f"{count:6}  {kind:<{wide}}  {model}")
