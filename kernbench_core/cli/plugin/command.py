"""The commands of `kernbench plugins`."""

from __future__ import annotations

import rich_click as click

from kernbench_core.cli.columns import paragraph, table, width
from kernbench_core.cli.option_types import completed_by
from kernbench_core.cli.shell import Shell

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")


@click.group("plugins", context_settings={"help_option_names": ["-h", "--help"]})
def plugin_group() -> None:
    """Look at the plug-ins: which there are, and what each brings."""


@plugin_group.command("list")
@_JSON
@click.pass_obj
def list_plugins(shell: Shell, as_json: bool) -> None:
    """List the plug-ins, those that are left out too, and why."""
    from kernbench_core.cli.plugin.inventory import inventory
    from kernbench_core.runs.result import json_text

    found = inventory(shell.plugins)
    if as_json:
        click.echo(json_text({"schema": "kernbench.plugins/1", "plugins": [each.to_json() for each in found]}))
        return
    rows = [(each.name, each.provider, str(each.api or "-"), each.brings(), each.state) for each in found]
    table(("plug-in", "distribution", "hooks", "brings", "state"), rows)
    for each in found:
        for reason in each.reasons:
            paragraph(f"{each.name}: {reason}.", "    ", "  ", min(width(), 100))


@plugin_group.command()
@click.argument("name", shell_complete=completed_by("plugins"))
@_JSON
@click.pass_obj
def show(shell: Shell, name: str, as_json: bool) -> None:
    """Describe the plug-in called NAME: what it registers, and the parameters, ports and statistics of its models."""
    from kernbench_core.cli.plugin.description import describe, print_description
    from kernbench_core.cli.plugin.inventory import found_plugin
    from kernbench_core.runs.result import json_text

    described = describe(shell.plugins, found_plugin(shell.plugins, name), shell.warn)
    if as_json:
        click.echo(json_text({"schema": "kernbench.plugin/1", "plugin": described}))
    else:
        print_description(described)
