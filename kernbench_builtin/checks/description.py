"""What one plug-in registers, told in detail."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import rich_click as click
from attrs import asdict

from kernbench_builtin.checks.ports import Ports, Wiring
from kernbench_builtin.machines.cli.catalogue import PARAMETER_TITLES, component_json, parameter_rows
from kernbench_builtin.machines.cli.search import matching, nothing_found
from kernbench_core.cli.columns import paragraph, table, width
from kernbench_core.cli.plugin_list import FoundPlugin, inventory, plural
from kernbench_core.errors import KernbenchError
from kernbench_core.plugins import Plugins, Registry
from kernbench_core.plugins.chosen import several_plugins

_WIDE = 100


def found_plugin(plugins: Plugins, name: str) -> FoundPlugin:
    """Return the plug-in of this name, or of a distribution of this name; UsageError for none, and for several."""
    found = inventory(plugins)
    named = [each for each in found if name in (each.name, each.distribution)]
    if not named:
        names = matching(name, [each.name for each in found])
        named = [each for each in found if names == (each.name,)]
    if not named:
        raise nothing_found("plug-in", name, [each.name for each in found])
    if len(named) > 1:
        raise several_plugins(name, [(each.name, each.distribution) for each in named])
    return named[0]


def describe(plugins: Plugins, found: FoundPlugin, warn: Callable[[str], None]) -> dict[str, Any]:
    """Return what a plug-in is and registers, as JSON has it; warn of a model that cannot be opened."""
    wiring = Wiring(plugins)
    entries = {sort: [_entry(plugins, sort, name) for name in names] for sort, names in found.entries.items()}
    for entry in entries.get("components", ()):
        try:
            entry.update(_model(plugins, entry["name"], wiring))
        except KernbenchError as error:
            warn(str(error))
    return {**found.to_json(), "entries": entries}


def print_description(described: dict[str, Any], plugins: Plugins) -> None:
    """Print what a plug-in is, what it registers, and of its models what they take, are wired to and count."""
    wide = min(width(), _WIDE)
    click.secho(described["name"], bold=True)
    provider = f"{described['distribution']} {described['version']}".strip()
    module = f", module {described['module']}, for hooks of version {described['api']}" if described["module"] else ""
    paragraph(f"from {provider}{module}; {described['state']}", most=wide)
    for reason in described["reasons"]:
        paragraph(f"{reason}.", most=wide)
    for sort, entries in described["entries"].items():
        noun = plugins.points[sort].noun
        click.echo()
        click.secho(f"{len(entries)} {noun if len(entries) == 1 else plural(noun)}", bold=True)
        table(("name", "what it is", "target"), [(each["name"], each["sentence"], each["target"]) for each in entries])
    for model in described["entries"].get("components", ()):
        _print_model(model, wide)


def _entry(plugins: Plugins, sort: str, name: str) -> dict[str, Any]:
    registry = plugins.registries[sort]
    entry = registry[name]
    sentence = getattr(entry, "sentence", "")
    if sort == "benches":
        from kernbench_core.host.bench import open_bench

        try:
            sentence = open_bench(name, registry).sentence
        except KernbenchError as error:
            sentence = f"({error})"
    elif sort == "ops":
        sentence = _of_op(registry, name)
    return {"name": name, "sentence": sentence, "target": entry.target}


def _of_op(ops: Registry[Any], name: str) -> str:
    """Return the first line of the docstring of an op's function, of a record's own or of the one that it names."""
    try:
        found = ops.load(name)
    except KernbenchError as error:
        return f"({error})"
    function = found if inspect.isroutine(found) else getattr(found, "function", None)
    return (inspect.getdoc(function) or "").partition("\n")[0] if inspect.isroutine(function) else ""


def _model(plugins: Plugins, name: str, wiring: Wiring) -> dict[str, Any]:
    statistics = [
        {"name": stat.name, "unit": stat.unit, "combine": stat.combine, "sentence": stat.doc}
        for stat in plugins.components.load(name).STATS
    ]
    kinds = plugins.components.made_for(name)
    ports = [ports for ports in map(wiring.ports, kinds) if ports is not None]
    return {
        "kinds": list(kinds),
        "params": component_json(plugins, name)["params"],
        "ports": [asdict(each) for each in ports],
        "statistics": statistics,
    }


def _print_model(model: dict[str, Any], wide: int) -> None:
    click.echo()
    click.secho(model["name"], bold=True)
    if "params" not in model:
        paragraph("It cannot be opened.", most=wide)
        return
    wired = {each["kind"]: str(Ports(**each)) for each in model["ports"]}
    for kind in model["kinds"]:
        paragraph(f"ports of {wired.get(kind, f'{kind}: those that configuration gives it')}", "    ", "  ", wide)
    if not model["kinds"]:
        paragraph("for nodes of any kind", most=wide)
    if model["params"]:
        table(("  parameter", *PARAMETER_TITLES[1:]), [(f"  {name}", *rest) for name, *rest in parameter_rows(model)])
    if model["statistics"]:
        rows = [(f"  {each['name']}", each["unit"], each["combine"], each["sentence"]) for each in model["statistics"]]
        table(("  statistic", "unit", "of several", "meaning"), rows)
