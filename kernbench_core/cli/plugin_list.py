"""`kernbench plugins`, a group for commands of plug-ins, and its `list`: those loaded, failed, and not wanted."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import rich_click as click
from attrs import asdict, frozen

from kernbench_core.cli.columns import paragraph, table, width
from kernbench_core.cli.group import CommandGroup
from kernbench_core.cli.options import JSON
from kernbench_core.cli.shell import Shell
from kernbench_core.plugins import PluginFailure, Plugins, Provider


@click.group("plugins", cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
def plugin_group() -> None:
    """List, describe, check and write plug-ins."""


@click.command("list")
@JSON
@click.pass_obj
def list_plugins(shell: Shell, as_json: bool) -> None:
    """List the plug-ins, and why any is left out."""
    from kernbench_core.runs.result import json_text

    found = inventory(shell.plugins)
    if as_json:
        click.echo(json_text({"schema": "kernbench.plugins/1", "plugins": [each.to_json() for each in found]}))
        return
    rows = [(each.name, each.provider, str(each.api or "-"), each.brings(shell.plugins), each.state) for each in found]
    table(("plug-in", "distribution", "hooks", "brings", "state"), rows)
    for each in found:
        for reason in each.reasons:
            paragraph(f"{each.name}: {reason}.", "    ", "  ", min(width(), 100))


@frozen
class FoundPlugin:
    """Say of one plug-in who brings it, what it registers, by sort, and what of it is left out, for which reasons.

    `api` is the version of the hooks that it is written for, `module` the one that has them; None where it was not
    loaded.
    """

    name: str
    distribution: str
    version: str
    api: int | None
    module: str | None
    state: str
    reasons: tuple[str, ...]
    entries: Mapping[str, tuple[str, ...]]

    @property
    def provider(self) -> str:
        """The distribution and its version."""
        return f"{self.distribution} {self.version}".strip()

    def brings(self, plugins: Plugins) -> str:
        """Count what it registers."""
        counts = ((len(names), plugins.points[sort].noun) for sort, names in self.entries.items())
        return ", ".join(f"{count} {noun if count == 1 else plural(noun)}" for count, noun in counts) or "-"

    def to_json(self) -> dict[str, Any]:
        """Return this as JSON has it."""
        return asdict(self)


def inventory(plugins: Plugins) -> tuple[FoundPlugin, ...]:
    """Return every plug-in that was found, sorted by name."""
    loaded = [
        _loaded(plugins, source.provider, source.module, [each for each in plugins.failures if each.entry])
        for source in plugins.sources
    ]
    failed = [_absent(each, "left out") for each in plugins.failures if not each.entry]
    blocked = [_absent(each, "not wanted") for each in plugins.blocked]
    return tuple(sorted((*loaded, *failed, *blocked), key=lambda found: (found.name, found.distribution)))


def plural(noun: str) -> str:
    """Return the word for several."""
    head, of, tail = noun.partition(" of ")
    many = {"bench": "benches", "topology preset": "topology presets"}.get(head, f"{head}s")
    return f"{many}{of}{tail}"


def _loaded(plugins: Plugins, provider: Provider, module: str, failures: list[PluginFailure]) -> FoundPlugin:
    entries = {
        sort: tuple(name for name in registry if registry.provider(name) == provider)
        for sort, registry in plugins.registries.items()
    }
    reasons = tuple(str(each) for each in failures if each.provider == provider)
    state = f"loaded, {len(reasons)} left out" if reasons else "loaded"
    api = getattr(sys.modules.get(module), "kernbench_api", None)
    has = {sort: names for sort, names in entries.items() if names}
    return FoundPlugin(provider.plugin, provider.distribution, provider.version, api, module, state, reasons, has)


def _absent(failure: PluginFailure, state: str) -> FoundPlugin:
    who = failure.provider
    return FoundPlugin(who.plugin, who.distribution, who.version, None, None, state, (failure.reason,), {})
