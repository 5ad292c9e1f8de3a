"""`kernbench what-if`: what a recorded run would gain if a resource were faster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from kernbench_core.cli.option_types import completed_by
from kernbench_core.cli.options import JSON, with_parameters
from kernbench_core.errors import UsageError
from kernbench_core.process.interrupt import doing
from kernbench_core.process.terminal import shown

if TYPE_CHECKING:
    from kernbench_builtin.native.what_if import WhatIf
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
        from kernbench_builtin.native.gain_text import gain_lines
        from kernbench_core.runs.result import json_text

        plugins = shell.plugins
    found = worked_out(Path(run), plugins)
    if as_json:
        click.echo(json_text(found.to_json()))
        return 0
    sys.stdout.write(shown("\n".join(gain_lines(found))) + "\n")
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

    if (folder / "manifest.json").is_file() and not (folder / FILE).is_file():
        raise UsageError(f"the run in {str(folder)!r} must have a recording, and has none; run it with --record, too.")
    recording = Recording.load(folder / FILE)
    manifest = read_manifest(folder / "manifest.json")
    machine = machine_of(compile_topology(configure(plugins, manifest.configuration), plugins))
    return ask(recording, machine, plugins)
