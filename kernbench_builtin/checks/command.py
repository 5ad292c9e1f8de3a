"""The commands of `kernbench plugins` that look into one, check it, or begin one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import rich_click as click

from kernbench_core.cli.columns import paragraph, table, width
from kernbench_core.cli.option_types import completed_by
from kernbench_core.cli.options import JSON
from kernbench_core.cli.shell import Shell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernbench_core.testing import CheckResult

_WRONG = 1
#: Entries with one and the same verdict that are told by name.
_FEW = 3


@click.command()
@click.argument("name", shell_complete=completed_by("plugins"))
@JSON
@click.pass_obj
def show(shell: Shell, name: str, as_json: bool) -> None:
    """Describe a plug-in: what it registers, and the parameters, ports and statistics of its models."""
    from kernbench_builtin.checks.description import describe, found_plugin, print_description
    from kernbench_core.runs.result import json_text

    described = describe(shell.plugins, found_plugin(shell.plugins, name), shell.warn)
    if as_json:
        click.echo(json_text({"schema": "kernbench.plugin/1", "plugin": described}))
    else:
        print_description(described, shell.plugins)


@click.command()
@click.argument("name", shell_complete=completed_by("plugins"))
@click.argument("only", metavar="[ENTRY|CHECK]...", nargs=-1)
@click.option(
    "--kit", "kits", multiple=True, metavar="VENDOR:KIT", help="Which kit, if names are ambiguous; repeatable."
)
@JSON
@click.pass_obj
def check(shell: Shell, name: str, only: tuple[str, ...], kits: tuple[str, ...], as_json: bool) -> int:
    """Check what a plug-in registers, or only the given entries or checks; exit with 1 when one fails."""
    from kernbench_builtin.checks.conformance import Conformance
    from kernbench_core.runs.result import json_text

    results = list(Conformance.of(name, shell.plugins, kits).results(only))
    if as_json:
        found = {"schema": "kernbench.conformance/1", "plugin": name, "results": [each.to_json() for each in results]}
        click.echo(json_text(found))
    else:
        _print_results(name, results)
    return 0 if all(each.outcome.right for each in results) else _WRONG


@click.command()
@click.argument("name")
@click.option("--dir", "folder", default=".", metavar="DIR", help="The folder to write it into.")
@click.pass_obj
def new(shell: Shell, name: str, folder: str) -> None:
    """Write a plug-in to start from: a distribution that passes its own tests.

    It has a hardware model, a collective algorithm, and tests that run all checks of both.
    """
    from pathlib import Path

    from kernbench_builtin.checks.scaffold import NewPlugin

    begun = NewPlugin.called(name, shell.plugins)
    there = begun.write(Path(folder))
    click.echo(f"wrote {there}, {len(begun.files)} files")
    click.echo("\n".join(begun.next_steps(there)))


def _print_results(name: str, results: Sequence[CheckResult]) -> None:
    """Print how many checks of each entry ended how, the reasons of all that did not pass, and the verdict."""
    if not results:
        click.echo(f"plug-in {name} registers nothing that there is a kit for.")
        return
    counts: dict[tuple[str, str], Counter[str]] = {}
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for each in results:
        counts.setdefault((each.entry, each.sort), Counter())[str(each.outcome)] += 1
        if each.reason:
            reasons.setdefault((each.entry, str(each.outcome), each.reason), []).append(each.check)
    rows = [(*which, ", ".join(f"{count} {outcome}" for outcome, count in of.items())) for which, of in counts.items()]
    table(("entry", "sort", "checks"), rows)
    alike: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (entry, outcome, reason), checks in reasons.items():
        alike.setdefault((outcome, reason, tuple(checks)), []).append(entry)
    for (outcome, reason, of), entries in alike.items():
        which = of[0] if len(of) == 1 else f"{len(of)} checks"
        who = ", ".join(entries if len(entries) <= _FEW else [*entries[:_FEW], f"and {len(entries) - _FEW} more"])
        paragraph(f"{who}, {which} {outcome}: {reason.rstrip('.')}.", "    ", "  ", min(width(), 100))
    wrong = sum(not each.outcome.right for each in results)
    told = f"{wrong} of {len(results)} checks did not end" if wrong else f"all {len(results)} checks ended"
    click.secho(f"{told} as they must.", fg="red" if wrong else "green")
