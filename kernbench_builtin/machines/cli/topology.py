"""`kernbench topology`: show and validate a configuration, list networks and kinds of machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from kernbench_core.cli.columns import table
from kernbench_core.cli.option_types import completed_by
from kernbench_core.cli.options import COMPONENTS, JSON, SETS, with_parameters
from kernbench_core.cli.shell import Shell
from kernbench_core.errors import UsageError
from kernbench_core.process.terminal import shown
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_core.graph import Graph
    from kernbench_core.plugins import MachineRegistry, NetworkRegistry, Plugins


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def topology() -> None:
    """Show machines, check configurations, or print their JSON Schema."""


@topology.command()
@click.argument("source", metavar="PRESET|FILE", shell_complete=completed_by("presets"))
@click.option(
    "--view",
    type=click.Choice(["system", "sip", "cube", "pe"]),
    default="system",
    show_default=True,
    help="What to show.",
)
@click.option(
    "--svg", metavar="FILE", help="Draw it into an SVG file.", shell_complete=completed_by("files")
)
@click.option("--node", metavar="PART", help="The part that --svg draws (sip0.cube0), instead of --view.")
@with_parameters(COMPONENTS.but(panel=None), SETS.but(panel=None), JSON)
@click.pass_obj
def show(
    shell: Shell, source: str, view: str, svg: str | None, node: str | None, components: str | None,
    sets: tuple[str, ...], as_json: bool,
) -> None:  # fmt: skip
    """Show a machine: its counts and a picture; with --view pe the parameters of its units, too."""
    from kernbench_builtin.machines.cli.topology_view import parameters_of_pe
    from kernbench_builtin.machines.cli.topology_view import show as draw
    from kernbench_core.cli.columns import width

    if node is not None and svg is None:
        raise UsageError(f"--node must be given with --svg FILE, not alone, as {node!r} is here.")
    graph = _compiled(shell, source, components, sets)
    if svg is not None:
        _draw(graph, source, Path(svg), view, node)
    elif as_json:
        _echo(graph, source)
    else:
        click.echo(shown(draw(graph, view)))
        if view == "pe":
            models = shell.plugins.components
            lines = parameters_of_pe(graph, lambda node: models.load(node.impl).PARAMS, width())
            click.echo(shown("\n".join(["", *lines])))


@topology.command()
@click.argument("source", metavar="PRESET|FILE", shell_complete=completed_by("presets"))
@with_parameters(COMPONENTS.but(panel=None), SETS.but(panel=None), JSON)
@click.pass_obj
def validate(shell: Shell, source: str, components: str | None, sets: tuple[str, ...], as_json: bool) -> None:
    """Check a configuration, and report all errors with file and line."""
    graph = _compiled(shell, source, components, sets)
    _build(graph, shell.plugins)
    if as_json:
        _echo(graph, source)
        return
    for warning in graph.warnings:
        shell.warn(warning)
    counts = counts_of(graph)
    click.echo(shown(f"{source}: valid; {counts['nodes']:,} nodes, {counts['edges']:,} edges, {counts['pes']:,} PEs."))


@topology.command("list")
@click.argument("name", required=False, shell_complete=completed_by("preset_names"))
@JSON
@click.pass_obj
def presets(shell: Shell, name: str | None, as_json: bool) -> None:
    """List the presets, or those with NAME in their names, with their SIPs, cubes and PEs."""
    from kernbench_builtin.machines.cli.topology_list import list_presets

    list_presets(shell, name, as_json)


@topology.command()
@JSON
@click.pass_obj
def networks(shell: Shell, as_json: bool) -> None:
    """List the network shapes for system.network.topology."""
    _list(shell.plugins.networks, "networks", as_json)


@topology.command()
@JSON
@click.pass_obj
def machines(shell: Shell, as_json: bool) -> None:
    """List the kinds of machine, by the section that describes one."""
    _list(shell.plugins.machines, "machines", as_json)


@topology.command()
@click.argument("section", required=False)
@click.option("--merged", is_flag=True, help="For merged files: require every key.")
@click.pass_obj
def schema(shell: Shell, section: str | None, merged: bool) -> None:
    """Print the JSON Schema (2020-12) of configuration files, or of one SECTION, for editors and validators."""
    from kernbench_builtin.machines.schema.document import configuration_schema, section_schema
    from kernbench_core.runs.result import json_text

    plugins = shell.plugins
    found = configuration_schema(
        plugins.components, plugins.networks, plugins.machines, merged=merged, warn=shell.warn
    )
    click.echo(json_text(found if section is None else section_schema(found, section)))


def _draw(graph: Graph, source: str, path: Path, view: str, node: str | None) -> None:
    """Write a picture of a part of a machine; of a view without one, the first of its level."""
    from kernbench_builtin.machines.drawing import draw_machine
    from kernbench_core.process.whole_files import check_file, write_text

    target = check_file("SVG file", path, ".svg")
    drawing = draw_machine(graph, title=Path(source).name)
    if node is None:
        levels = {name: drawing.views[number].level for name, number in drawing.parts.items()}
        node = next((name for name, level in levels.items() if level == view), None)
        if node is None:
            raise UsageError(
                f"view must be one of {', '.join(dict.fromkeys(levels.values()))} here, not {brief(view)}."
            )
    write_text(target, drawing.svg(node))


def _list(registry: NetworkRegistry | MachineRegistry, plural: str, as_json: bool) -> None:
    """Print the names of a registry, with a sentence and who brings each."""
    from kernbench_core.runs.result import json_text

    rows = [(name, entry.sentence, str(registry.provider(name))) for name, entry in registry.items()]
    if as_json:
        found = [dict(zip(("name", "sentence", "provider"), row, strict=True)) for row in rows]
        click.echo(json_text({"schema": f"kernbench.{plural}/1", plural: found}))
        return
    table((registry.noun, "what it is", "provider"), rows)


def counts_of(graph: Graph) -> dict[str, Any]:
    """Count nodes, edges, PEs, and nodes by kind."""
    from kernbench_core.topology.design import Machine

    kinds: dict[str, int] = {}
    for node in graph.nodes.values():
        kinds[node.kind] = kinds.get(node.kind, 0) + 1
    pes = len(graph.design.pes) if isinstance(graph, Machine) else 0
    return {"nodes": len(graph.nodes), "edges": len(graph.edges), "pes": pes, "kinds": dict(sorted(kinds.items()))}


def _compiled(shell: Shell, source: str, components: str | None, sets: tuple[str, ...]) -> Graph:
    from kernbench_core.runs.bench_run import configure
    from kernbench_core.topology.compilation import compile_topology

    plugins = shell.plugins
    config = configure(plugins, source, components, sets)
    return compile_topology(config, plugins)


def _build(graph: Graph, plugins: Plugins) -> None:
    """Build the machine once: what its models require of their parameters, they say themselves."""
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.environment import Environment
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.topology.design import Machine

    if isinstance(graph, Machine):
        GraphEngine(graph, plugins.components, plugins=plugins)
    else:
        Hardware(Environment(), graph).build(plugins.components)


def _echo(graph: Graph, source: str) -> None:
    from kernbench_core.runs.result import json_text

    found = {"topology": source, "valid": True, **counts_of(graph), "warnings": list(graph.warnings)}
    click.echo(json_text({"schema": "kernbench.topology/1", **found}))
