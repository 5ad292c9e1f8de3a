"""`kernbench list` and `kernbench components`: what is there to be run, and what machines are made of."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import rich_click as click

from kernbench_builtin.machines.cli.search import matching, nothing_found, tell_of_none
from kernbench_core.cli.bench_view import parameter_lines, typed
from kernbench_core.cli.columns import GAP, paragraph, table, width, wrapped
from kernbench_core.cli.option_types import completed_by
from kernbench_core.cli.options import JSON, VERBOSE, with_parameters
from kernbench_core.cli.shell import Shell
from kernbench_core.errors import KernbenchError, UnknownName
from kernbench_core.process.terminal import shown, shown_in_line

if TYPE_CHECKING:
    from kernbench_core.host.bench import Bench, BenchParam
    from kernbench_core.plugins import Plugins

_MOST = 120
"""Characters of a line of prose; a wider one is hard to read."""
PARAMETER_TITLES = ("parameter", "type (unit)", "default", "meaning")


def one_line_each(rows: Sequence[tuple[str, str]]) -> None:
    """Print names and sentences, each pair in a line; a sentence that is too long ends at a word and with "…"."""
    names, wide = max((len(shown(name)) for name, _ in rows), default=0), width()
    for name, sentence in rows:
        click.secho(f"{shown(name):<{names + GAP}}", bold=True, nl=False)
        room, told = max(1, wide - names - GAP), shown_in_line(sentence)
        cut = textwrap.shorten(told, room, placeholder=" …", break_on_hyphens=False)
        click.echo(told if len(told) <= room else cut)


@click.command("list")
@click.argument("name", metavar="[NAME|FILE.py]", required=False, shell_complete=completed_by("benches"))
@with_parameters(JSON, VERBOSE)
@click.pass_obj
def list_benches(shell: Shell, name: str | None, as_json: bool, verbose: bool) -> None:
    """List the benches, or describe one: what it does, and its parameters.

    NAME may be part of a name; all that match are listed. -v prints whole sentences and parameters of all.
    """
    from kernbench_core.host.sources import file_and_function

    benches = shell.plugins.benches
    found = tuple(benches)
    if name is not None:
        found = (name,) if name in benches or file_and_function(name) is not None else matching(name, benches)
        if not found:
            raise nothing_found("bench", name, benches, "or the path of a .py file", left_out=benches.left_out)
    if name is not None and len(found) == 1:
        _one_bench(shell, found[0], as_json)
        return
    tell_of_none(shell, "bench", benches)
    opened = list(_opened(shell, found))
    if as_json:
        _echo_json("kernbench.benches/1", "benches", [_bench_json(bench, provider) for bench, provider in opened])
        return
    if verbose:
        _print_benches([bench for bench, _ in opened])
    else:
        one_line_each([(bench.name, bench.sentence) for bench, _ in opened])


def _opened(shell: Shell, names: Iterable[str]) -> Iterable[tuple[Bench, str]]:
    """Yield the benches of these names, each with who brings it; warn of one that cannot be had."""
    from kernbench_core.host.bench import open_bench

    for name in names:
        try:
            yield open_bench(name, shell.plugins.benches), str(shell.plugins.benches.provider(name))
        except KernbenchError as error:
            shell.warn(str(error))


def _one_bench(shell: Shell, name: str, as_json: bool) -> None:
    from kernbench_core.host.programs import open_program

    with redirect_stdout(sys.stderr):  # what a file prints is no description
        bench = open_program(name, shell.plugins)
    provider = str(shell.plugins.benches.provider(name)) if bench.registered else name
    if as_json:
        _echo_json("kernbench.bench/1", "bench", _bench_json(bench, provider))
    else:
        _describe_bench(bench, provider)


def _print_benches(benches: Sequence[Bench]) -> None:
    """Print each bench with its sentence, and its parameters as `-p` takes them, wrapped at words."""
    wide = min(width(), _MOST)
    names = max((len(bench.name) for bench in benches), default=0) + GAP
    beside = names + 30 <= wide  # else the sentence stands below the name
    for bench in benches:
        click.secho(shown(f"{bench.name:<{names}}" if beside else bench.name), bold=True, nl=not beside)
        indent = " " * (names if beside else GAP)
        lines = wrapped(shown_in_line(bench.sentence), wide, indent, indent)
        click.echo("\n".join(lines)[names if beside else 0 :])
        if bench.params:
            taken = " ".join(map(_assignment, bench.params))
            click.secho("\n".join(wrapped(shown_in_line(taken), wide, indent, indent)), dim=True)


def _describe_bench(bench: Bench, provider: str) -> None:
    """Print what a bench does, who brings it, and a table of its parameters."""
    click.secho(shown(bench.name), bold=True)
    if bench.sentence:
        paragraph(bench.sentence, most=min(width(), _MOST))
    click.echo(shown(f"  from {provider}"))
    click.echo()
    for number, line in enumerate(parameter_lines(bench.params, width())):
        click.secho(line, bold=not number and bool(bench.params))


def _assignment(param: BenchParam) -> str:
    """Write a parameter as `-p` takes it, with its default."""
    given = "" if param.required or param.default is None else typed(param.default)
    return f"{param.name}={given}" if given or param.required else param.name


@click.command()
@click.argument("name", required=False, shell_complete=completed_by("models"))
@with_parameters(JSON, VERBOSE)
@click.pass_obj
def components(shell: Shell, name: str | None, as_json: bool, verbose: bool) -> None:
    """List the hardware models, or describe one: its parameters, and what it models and ignores.

    NAME may be part of a name, as gemm of acme.pe_gemm; all that match are listed. -v prints kind and provider of all.
    """
    plugins = shell.plugins
    found = tuple(plugins.components)
    if name is not None:
        found = (name,) if name in plugins.components else matching(name, plugins.components)
        if not found:
            found = (_known_component(plugins, name),)
    if name is not None and len(found) == 1:
        described = component_json(plugins, found[0])
        if as_json:
            _echo_json("kernbench.component/1", "component", described)
        else:
            _describe(described)
        return
    tell_of_none(shell, "component", plugins.components)
    if as_json:
        _echo_json("kernbench.components/1", "components", [component_json(plugins, each) for each in found])
        return
    if not verbose:
        one_line_each([(each, plugins.components[each].sentence) for each in found])
        return
    rows = [
        (each, _kinds(plugins.components[each].kinds), plugins.components[each].sentence,
         str(plugins.components.provider(each)))
        for each in found
    ]  # fmt: skip
    table(("component", "kind", "what it is", "provider"), rows)


def _known_component(plugins: Plugins, name: str) -> str:
    """Return a name that the registry knows after all; raise for one of a plug-in that was left out, or of nobody."""
    try:
        plugins.components.provider(name)
    except UnknownName:
        raise nothing_found("component", name, plugins.components, left_out=plugins.components.left_out) from None
    return name


def _kinds(kinds: tuple[str, ...]) -> str:
    """Name the first of several kinds, and say how many more there are."""
    return f"{kinds[0]} +{len(kinds) - 1}" if len(kinds) > 1 else "".join(kinds) or "any"


def _bench_json(bench: Bench, provider: str) -> dict[str, Any]:
    params = [param.to_json() for param in bench.params]
    return {"name": bench.name, "sentence": bench.sentence, "provider": provider, "params": params}


def component_json(plugins: Plugins, name: str) -> dict[str, Any]:
    """Return what a component says of itself, as JSON has it; raise UnknownName or PluginError."""
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
    wide = min(width(), 100)
    click.secho(described["name"], bold=True)
    paragraph(described["sentence"], most=wide)
    paragraph(f"kind {described['kind']}, from {described['provider']} {described['version']}".rstrip(), most=wide)
    for section in ("models", "ignores", "timing", "source"):
        if described[section]:
            click.echo()
            lead = f"  {section.capitalize()}: "
            click.secho(lead, bold=True, nl=False)
            click.echo("\n".join(wrapped(shown(described[section]), wide, "    ", lead))[len(lead) :])
    click.echo()
    if not described["params"]:
        click.echo("  It has no parameters.")
        return
    table(PARAMETER_TITLES, parameter_rows(described))


def parameter_rows(described: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return a row for each parameter of a component that `component_json` described."""
    return [
        (
            param["name"],
            param["type"] + (f" ({param['unit']})" if param["unit"] else ""),
            "required" if param["required"] else _shown(param["default"]),
            param["sentence"],
        )
        for param in described["params"]
    ]


def _echo_json(schema: str, key: str, value: object) -> None:
    from kernbench_core.runs.result import json_text

    click.echo(json_text({"schema": schema, key: value}))
