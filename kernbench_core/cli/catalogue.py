"""`kernbench list` and `kernbench components`: what is there to be run, and what machines are made of."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import rich_click as click

from kernbench_core.cli.shell import Shell
from kernbench_core.errors import KernbenchError
from kernbench_core.process.terminal import shown

if TYPE_CHECKING:
    from kernbench_core.host.bench import Bench, BenchParam
    from kernbench_core.plugins import Plugins


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.pass_obj
def list_benches(shell: Shell, as_json: bool) -> None:
    """List the benches, with their parameters and one sentence each."""
    from kernbench_core.host.bench import open_bench

    found: list[tuple[Bench, str]] = []
    for name in shell.plugins.benches:
        try:
            found.append((open_bench(name, shell.plugins.benches), str(shell.plugins.benches.provider(name))))
        except KernbenchError as error:
            shell.warn(str(error))
    if as_json:
        _echo_json("kernbench.benches/1", "benches", [_bench_json(bench, provider) for bench, provider in found])
        return
    for bench, _ in found:
        click.secho(bench.name, bold=True, nl=False)
        click.echo(shown(f"  {bench.sentence}"))
        for param in bench.params:
            click.echo(shown(f"    {_signature(param)}"))


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.pass_obj
def components(shell: Shell, name: str | None, as_json: bool) -> None:
    """List the hardware models, or describe the one called NAME: its parameters, and what it models and ignores."""
    plugins = shell.plugins
    if name is not None:
        described = _component_json(plugins, name)
        if as_json:
            _echo_json("kernbench.component/1", "component", described)
        else:
            _describe(described)
        return
    if as_json:
        _echo_json(
            "kernbench.components/1", "components", [_component_json(plugins, each) for each in plugins.components]
        )
        return
    rows = [
        (each, _kinds(entry.kinds), entry.sentence, str(plugins.components.provider(each)))
        for each, entry in plugins.components.items()
    ]
    table(("component", "kind", "what it is", "provider"), rows)


def _kinds(kinds: tuple[str, ...]) -> str:
    """Name the first of several kinds, and say how many more there are."""
    return f"{kinds[0]} +{len(kinds) - 1}" if len(kinds) > 1 else "".join(kinds) or "any"


def _bench_json(bench: Bench, provider: str) -> dict[str, Any]:
    params = [param.to_json() for param in bench.params]
    return {"name": bench.name, "sentence": bench.sentence, "provider": provider, "params": params}


def _signature(param: BenchParam) -> str:
    kind = "|".join(param.choices) if param.kind == "choice" else {"npy": ".npy file"}.get(param.kind, param.kind)
    if param.required:
        return f"{param.name}: {kind} (required)"
    return f"{param.name}: {kind}" + ("" if param.default is None else f" = {param.default}")


def _component_json(plugins: Plugins, name: str) -> dict[str, Any]:
    from kernbench_core.host.timing import docstring_section

    entry = plugins.components[name]
    cls = plugins.components.load(name)
    provider = plugins.components.provider(name)
    return {
        "name": name,
        "kind": entry.kind,
        "sentence": entry.sentence,
        "provider": provider.distribution,
        "version": provider.version,
        "class": entry.target,
        **{section.lower(): docstring_section(cls, section) for section in ("Models", "Ignores", "Timing", "Source")},
        "params": [
            {
                "name": param.name,
                "type": param.dimension,
                "unit": param.unit,
                "default": param.default,
                "required": param.required,
                "choices": list(param.choices),
                "sentence": param.doc,
            }
            for param in plugins.components.declared(name)
        ],
    }


def _shown(default: object) -> str:
    """Write a parameter's default; the entries of a table that have one number stand together."""
    if not isinstance(default, dict):
        return str(default)
    names: dict[float, list[str]] = {}
    for name, number in default.items():
        names.setdefault(number, []).append(name)
    return "; ".join(f"{number:g}: {', '.join(each)}" for number, each in sorted(names.items()))


def _describe(described: dict[str, Any]) -> None:
    """Print what a component says of itself, then its parameters."""
    from kernbench_core.runs.text_report import make_console

    width = min(make_console(sys.stdout).width, 100)
    click.secho(described["name"], bold=True, nl=False)
    click.echo(shown(f"  {described['sentence']}"))
    click.echo(shown(f"  kind {described['kind']}, from {described['provider']} {described['version']}".rstrip()))
    for section in ("models", "ignores", "timing", "source"):
        if described[section]:
            click.echo()
            click.secho(f"  {section.capitalize()}: ", bold=True, nl=False)
            indent = " " * (len(section) + 4)
            click.echo(shown(click.wrap_text(described[section], width, indent, "    ").lstrip()))
    click.echo()
    if not described["params"]:
        click.echo("  It has no parameters.")
        return
    rows = [
        (
            param["name"],
            param["type"] + (f" ({param['unit']})" if param["unit"] else ""),
            "required" if param["required"] else _shown(param["default"]),
            param["sentence"],
        )
        for param in described["params"]
    ]
    table(("parameter", "type (unit)", "default", "meaning"), rows)


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print columns that line up, nothing drawn; the header is bold in a terminal."""
    from kernbench_core.runs.text_report import bare_table, make_console, show

    drawn = bare_table()
    for index, title in enumerate(header):
        drawn.add_column(title, no_wrap=index == 0)
    for row in rows:
        drawn.add_row(*row)
    show(drawn, make_console(sys.stdout))


def _echo_json(schema: str, key: str, value: object) -> None:
    from kernbench_core.runs.result import json_text

    click.echo(json_text({"schema": schema, key: value}))
