"""The group `kernbench plugins`, which plug-ins register commands for, and the list of plug-ins."""

from __future__ import annotations

import rich_click as click

from kernbench_core.cli.columns import paragraph, table, width
from kernbench_core.cli.group import CommandGroup
from kernbench_core.cli.shell import Shell


@click.group("plugins", cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
def plugin_group() -> None:
    """Look at the plug-ins."""


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
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
