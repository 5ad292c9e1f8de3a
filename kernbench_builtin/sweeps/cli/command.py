"""`kernbench sweep`: many runs of one bench, over machines and parameters."""

from __future__ import annotations

from typing import Any

import rich_click as click

from kernbench_builtin.sweeps.shaken import ShakeOptions
from kernbench_core.cli.option_types import Time, Whole, completed_by
from kernbench_core.cli.options import JSON, part_options
from kernbench_core.cli.run import run_options
from kernbench_core.cli.shell import Shell
from kernbench_core.errors import UsageError
from kernbench_core.process.interrupt import doing
from kernbench_core.runs.options import RunCall, command_options

#: Options of a run that no point of a sweep has: those that write files, and those that say what is varied.
_NOT_OF_POINTS = tuple(name for name, option in command_options(RunCall).items() if not option.kept)


@click.command()
@click.argument("bench", metavar="BENCH|PLAN.yaml|DIR", shell_complete=completed_by("benches"))
@click.argument("arguments", metavar="[-- ARGS]", nargs=-1, type=click.UNPROCESSED)
@click.option("--set", "sets", metavar="KEY=VALUES", multiple=True, help="Vary, or set, one configuration key.")
@click.option("-p", "params", metavar="NAME=VALUES", multiple=True, help="Vary, or set, a parameter of the bench.")
@click.option("--topology", metavar="NAMES", help="The machines to simulate.", shell_complete=completed_by("presets"))
@click.option("--components", metavar="FILE", help="A YAML file merged over every machine, to replace components.")
@click.option("--where", metavar="EXPR", multiple=True, help="Skip the points where this does not hold.")
@click.option("--objective", "objectives", metavar="EXPR[,EXPR]", help="What is looked for: figures of a run.")
@click.option("--figures", metavar="FILE.py", help="Functions (config, figures) that objectives may name.")
@click.option("--sample", metavar="HOW", help="grid, random:N or lhs:N points; grid without it.")
@click.option("--search", metavar="HOW", help="Have Optuna choose points: nsga2:N, tpe:N or random:N trials.")
@click.option("--sample-seed", "seed", type=Whole(0), metavar="N", help="Seed of --sample and --search.")
@click.option("--fidelity", metavar="auto[:K]", help="Screen all points coarsely, and run the best (K) in full.")
@click.option("-j", "processes", type=Whole(1), metavar="N", help="Processes; one for each core without it.")
@click.option("--scheduler", metavar="tcp://HOST:PORT", help="Have the workers of this Dask scheduler run the points.")
@click.option(
    "--patience", "patience_s", type=Time("5 min", 1e-9), metavar="T",
    help="Wait so long for a scheduler that is not there, or has no workers; 60 s without it.",
)
@click.option("-o", "folder", metavar="DIR", help="Keep each point as it ends, and the tables, in this folder.")
@click.option("--resume", is_flag=True, help="Go on with the sweep that DIR holds.")
@click.option("--retry-failed", is_flag=True, help="Try the points again that failed.")
@click.option("--retry-changed", is_flag=True, help="Try the points again whose files or code were changed since.")
@click.option("--cached", is_flag=True, default=None, help="Take points from the user's cache, and keep them there.")
@run_options(but=_NOT_OF_POINTS)
@part_options(ShakeOptions)
@JSON
@click.pass_obj
def sweep(
    shell: Shell, /, bench: str, folder: str | None, processes: int | None, scheduler: str | None,
    patience_s: float | None, resume: bool, retry_failed: bool, retry_changed: bool, as_json: bool,
    **asked: Any,
) -> int:  # fmt: skip
    """Run BENCH over machines and parameters: VALUES are lists (16,32) and ranges (100..800GB/s:log:4, 1..64:pow2)."""
    _check_where(processes, scheduler, patience_s, asked["search"])
    with doing("loading kernbench"):
        from kernbench_builtin.sweeps.cli.session import SweepSession

    with doing("planning the sweep"):
        session = SweepSession.of(shell, bench, folder, resume or retry_failed or retry_changed, as_json, asked)
    patience = {} if patience_s is None else {"patience_s": patience_s}
    return session.run(
        processes=processes, scheduler=scheduler, retry_failed=retry_failed, retry_changed=retry_changed, **patience
    )


def _check_where(processes: int | None, scheduler: str | None, patience_s: float | None, search: str | None) -> None:
    """Raise UsageError for what says in two ways where points are carried out."""
    if scheduler is not None and processes is not None and search is None:
        raise UsageError("-j must be left out with --scheduler, whose workers say how many points run at once.")
    if scheduler is None and patience_s is not None:
        raise UsageError("--patience must be given with --scheduler, which it is for.")
