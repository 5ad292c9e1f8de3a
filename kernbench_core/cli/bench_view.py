"""How benches and their parameters are shown in a terminal: in `list`, and in the help of `run`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import rich_click as click

from kernbench_core.cli.columns import GAP, lines_of, paragraph, width, wrapped
from kernbench_core.process.terminal import shown, shown_in_line

if TYPE_CHECKING:
    from kernbench_core.host.bench import Bench, BenchParam

_MOST = 120
"""Characters of a line of prose; a wider one is hard to read."""


def print_benches(benches: Sequence[Bench]) -> None:
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


def describe_bench(bench: Bench, provider: str) -> None:
    """Print what a bench does, who brings it, and a table of its parameters."""
    click.secho(shown(bench.name), bold=True)
    if bench.sentence:
        paragraph(bench.sentence, most=min(width(), _MOST))
    click.echo(shown(f"  from {provider}"))
    click.echo()
    for number, line in enumerate(parameter_lines(bench.params, width())):
        click.secho(line, bold=not number and bool(bench.params))


def parameter_lines(params: Sequence[BenchParam], wide: int) -> list[str]:
    """Return a table of parameters, or a line that says that there are none."""
    if not params:
        return ["It has no parameters."]
    rows = [[shown_in_line(cell) for cell in (p.name, _kind(p), _default(p), p.sentence)] for p in params]
    header = ["parameter", "type", "default", "meaning"]
    if not any(param.sentence for param in params):
        header, rows = header[:3], [row[:3] for row in rows]
    return lines_of(header, rows, wide)


def _kind(param: BenchParam) -> str:
    """Say in words of a table what a value must be."""
    if param.kind == "choice":
        return "one of " + ", ".join(param.choices)
    return {"npy": ".npy file", "str": "text", "bool": "true or false"}.get(param.kind, param.kind)


def _default(param: BenchParam) -> str:
    """Write the default as it would be typed."""
    return "required" if param.required else "-" if param.default is None else _typed(param.default)


def _typed(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _assignment(param: BenchParam) -> str:
    """Write a parameter as `-p` takes it, with its default."""
    given = "" if param.required or param.default is None else _typed(param.default)
    return f"{param.name}={given}" if given or param.required else param.name

