"""`kernbench explain`: what limits a saved run, and what to try."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import rich_click as click

from kernbench_core.cli.columns import width, wrapped
from kernbench_core.cli.option_types import completed_by
from kernbench_core.cli.options import JSON, with_parameters
from kernbench_core.errors import UsageError
from kernbench_core.process.interrupt import doing
from kernbench_core.process.terminal import shown

#: Lines of a path, and paths, that are printed; --json has all.
_MOST, _TABLES = 12, 8
#: What the time of no call is.
_NAMES = {"": "the PE's CPU", "late": "a launch that began later"}


@click.command()
@click.argument("run", metavar="RUN", shell_complete=completed_by("files"))
@with_parameters(JSON)
def explain(run: str, as_json: bool) -> int:
    """Show what limits RUN, saved with --out or --json: the verdict, advice, and what each kernel's slowest PE did."""
    with doing("loading kernbench"):
        from kernbench_builtin.compare.saved_figures import read_saved
        from kernbench_core.runs.result import json_text

    result = read_saved(Path(run)).result
    verdict = result.get("verdict")
    if verdict is None:
        raise UsageError(
            f"run {run!r} must hold a verdict, and has none, as plug-in builtin.explain was left out when it was made; "
            "run it again."
        )
    if as_json:
        launches = [{key: each.get(key) for key in ("kernel", "last", "path")} for each in result.get("launches") or ()]
        click.echo(json_text({"schema": "kernbench.explain/1", "verdict": verdict, "launches": launches}))
        return 0
    told = [f"{result['bench']} on {result['topology']}", *_lines(verdict)]
    if sys.stdout.isatty():
        told = [row for line in told for row in wrapped(line, width())]
    told += _paths(result.get("launches") or ())
    sys.stdout.write(shown("\n".join(told)) + "\n")
    return 0


def _lines(verdict: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a verdict, with all advice."""
    lines: list[str] = verdict["lines"]
    yield from (line for line in lines if not line.startswith(("try: ", "note: ", "more: ")))
    words = ("note" if each["about"] == "fact" else "try" for each in verdict["advice"])
    yield from (f"{word}: {each['sentence']}" for word, each in zip(words, verdict["advice"], strict=True))


def _paths(launches: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the tables of launches, one for those that are alike; of many different ones, the first."""
    tables = Counter(tuple(_path(launch)) for launch in launches)
    for (head, *rows), times in [*tables.items()][:_TABLES]:
        yield from ("", f"{head}, {times} launches alike" if times > 1 else head, *rows)
    left = sum([*tables.values()][_TABLES:])
    if left:
        yield from ("", f"and {left:,} more launch{'' if left == 1 else 'es'}; --json has them")


def _path(launch: Mapping[str, Any]) -> Iterator[str]:
    """Yield a table of what the time of a launch's slowest PE went to, by way of those that sent it messages."""
    from kernbench_core.units import format_time

    path: list[Mapping[str, Any]] = launch.get("path") or []
    whole = sum(each["ns"] for each in path)
    receives = any(each["unit"] == "pe_ipcq" and each["call"] != "tl.send" for each in path)
    others = ", and those that it waits for" if receives else ""
    yield f"slowest PE of {launch['kernel']}, {launch.get('last', '')}{others}, {format_time(whole)}"
    rows = [(f"{each['call']} {each['line']}".strip() or _NAMES[each["unit"]], each) for each in path[:_MOST]]
    width = max((len(name) for name, _ in rows), default=0)
    for name, each in rows:
        share = each["ns"] / whole if whole else 0.0
        yield f"  {name:<{width}}  {each['commands']:>5,}  {format_time(each['ns']):>9}  {share:>6.1%}"
    left = len(path) - len(rows)
    if left > 0:
        yield f"  and {left} more calls; --json lists them"
