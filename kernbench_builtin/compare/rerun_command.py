"""`kernbench rerun`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from kernbench_core.cli.option_types import completed_by
from kernbench_core.cli.options import JSON, QUIET, TIMEOUT, with_parameters
from kernbench_core.cli.run import INTERRUPTED, Look, print_run, tell_interruption, with_progress
from kernbench_core.cli.shell import Shell
from kernbench_core.process.interrupt import doing
from kernbench_core.process.terminal import shown

if TYPE_CHECKING:
    from kernbench_builtin.compare.reruns import Rerun
    from kernbench_core.engine.watchdog import Progress
    from kernbench_core.runs.result import RunResult


@click.command()
@click.argument("manifest", metavar="MANIFEST|RUN", shell_complete=completed_by("files"))
@click.option("--trust", is_flag=True, help="Allow a bench outside the manifest's folder, or a function.")
@with_parameters(TIMEOUT.but(help="Stop after this wall time ('60 s'), not the manifest's."), JSON, QUIET)
@click.pass_obj
def rerun(shell: Shell, /, manifest: str, as_json: bool, quiet: bool, **asked: Any) -> int:
    """Run a saved run again, and compare the op logs."""
    with doing("loading kernbench"):
        from kernbench_builtin.compare.reruns import rerun as rerun_manifest
        from kernbench_core.runs.bench_run import RunInterrupted

    look = Look(as_json, quiet)

    def carry_out(on_progress: Callable[[Progress], None] | None) -> Rerun:
        return rerun_manifest(manifest, on_progress=on_progress, plugins=shell.plugins, **asked)

    try:
        again = with_progress(carry_out, Path(manifest).name, look)
    except RunInterrupted as interruption:
        if as_json:
            _echo_rerun(None, (), interruption.result)
        else:
            print_run(interruption.result, look, shell)
        tell_interruption(interruption, shell)
        return INTERRUPTED
    if as_json:
        _echo_rerun(again.same, again.differences, again.result)
    else:
        _tell_rerun(again, quiet)
    return 0 if again.same and again.result.right else 1


def _tell_rerun(again: Rerun, quiet: bool) -> None:
    """Say whether the op log is the same, and what is wrong with the data."""
    result = again.result
    if quiet:
        same = f"same op log: {result.op_log_sha256}" if again.same else f"the op log differs: {again.differences[0]}"
        click.echo(shown(same if result.right else f"{same}; {''.join(text for text, _ in result.words()).rstrip()}"))
        return
    if again.same:
        click.echo(f"same op log: {result.op_log_sha256} ({result.timing.ops:,} ops)")
        for difference in again.differences:
            click.echo(shown(f"  though {difference}"))
    else:
        click.echo("the op log differs:")
        for difference in again.differences:
            click.echo(shown(f"  {difference}"))
    if not result.right:
        click.echo(shown("".join(text for text, _ in result.words())))
        for verification in (result.verification, result.op_verification):
            for line in "\n".join(() if verification is None else verification.failures).splitlines():
                click.echo(shown(f"  {line}"))


def _echo_rerun(same: bool | None, differences: Sequence[str], result: RunResult) -> None:
    """Print the object of --json; `same` is None when the run did not come to its end."""
    from kernbench_core.runs.result import json_text

    found = {"same": same, "differences": list(differences), "result": result.to_json()}
    click.echo(json_text({"schema": "kernbench.rerun/1", **found}))
