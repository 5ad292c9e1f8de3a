"""`kernbench what-if`: what a recorded run would gain if a resource were faster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from kernbench_core.cli.columns import width, wrapped
from kernbench_core.cli.option_types import completed_by
from kernbench_core.cli.options import JSON, with_parameters
from kernbench_core.process.interrupt import doing
from kernbench_core.process.terminal import shown

if TYPE_CHECKING:
    from kernbench_builtin.native.what_if import Retimed, WhatIf
    from kernbench_core.cli.shell import Shell
    from kernbench_core.plugins import Plugins


@click.command("what-if")
@click.argument("run", metavar="RUN", shell_complete=completed_by("files"))
@with_parameters(JSON)
@click.pass_obj
def what_if(shell: Shell, run: str, as_json: bool) -> int:
    """Say what RUN would gain if a resource were twice as fast, or free; `run --record --out RUN` makes RUN.

    The program does not change. The native engine's times equal those of a full run bit for bit.
    """
    with doing("loading kernbench"):
        from kernbench_core.runs.result import json_text

        plugins = shell.plugins
    found = worked_out(Path(run), plugins)
    if as_json:
        click.echo(json_text(found.to_json()))
        return 0
    sys.stdout.write(shown("\n".join(lines(found))) + "\n")
    return 0


def worked_out(folder: Path, plugins: Plugins) -> WhatIf:
    """Ask what-if of the run in a folder; UsageError for one that was not recorded, or does not hold."""
    from kernbench_builtin.compare.read_manifest import read_manifest
    from kernbench_builtin.native.part import FILE
    from kernbench_builtin.native.recording import Recording
    from kernbench_builtin.native.what_if import what_if as ask
    from kernbench_core.runs.bench_run import configure
    from kernbench_core.topology.compilation import compile_topology
    from kernbench_core.topology.design import machine_of

    recording = Recording.load(folder / FILE)
    manifest = read_manifest(folder / "manifest.json")
    machine = machine_of(compile_topology(configure(plugins, manifest.configuration), plugins))
    return ask(recording, machine, plugins)


def lines(found: WhatIf) -> list[str]:
    """Say the answer as a table, what gains most first, as wide as the terminal."""
    from kernbench_core.cli.columns import lines_of
    from kernbench_core.units import format_time

    now = found.now
    rows, same = [], []
    for resource, twice, free in found.ranked():
        if twice == free == now:
            same.append(resource.name)
        else:
            rows.append((resource.name, *_cells(twice, found), *_cells(free, found)))
    head = ("if this were faster", "twice: kernels", "total", "free: kernels", "total")
    times = (
        f"{name} {format_time(ns)} (spread {format_time(spread.width_ns)})"
        for name, ns, spread in (("kernels", now.kernel_ns, found.kernels), ("total", now.total_ns, found.total))
    )
    told = [f"now: {', '.join(times)}", ""]
    told += lines_of(head, rows, width())
    if any("~" in row for row in rows):
        told += ["", *wrapped("~ is a change within the spread, which may be chance", width())]
    if same:
        told += ["", *wrapped(f"no gain at all: {', '.join(same)}", width())]
    if found.chosen:
        chosen = f"the program chose its blocks by {', '.join(found.chosen)}, and is not made anew for faster ones"
        told += ["", *wrapped(chosen, width())]
    return told


def _cells(outcome: Retimed, found: WhatIf) -> tuple[str, str]:
    if outcome.refused:
        return "unknown", "unknown"
    kernels = _change(outcome.kernel_ns, found.now.kernel_ns, found.kernels.width_ns)
    return kernels, _change(outcome.total_ns, found.now.total_ns, found.total.width_ns)


def _change(ns: float, before: float, spread_ns: float) -> str:
    """Return the change in percent; one within the spread is none that is known."""
    if not before or ns == before:
        return "="
    return f"{(ns - before) / before:+.1%}" if abs(ns - before) > spread_ns else "~"
