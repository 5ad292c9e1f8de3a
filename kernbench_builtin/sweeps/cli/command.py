"""`kernbench sweep`: many runs of one bench, over machines and parameters."""

from __future__ import annotations

from typing import Any

import rich_click as click

from kernbench_builtin.sweeps.shaken import ShakeOptions
from kernbench_core.cli.option_types import completed_by, duration, whole
from kernbench_core.cli.options import JSON, QUIET, Declared, grouped, record_options, with_parameters
from kernbench_core.cli.run_help import GroupedCommand
from kernbench_core.cli.shell import Shell
from kernbench_core.errors import UsageError
from kernbench_core.process.interrupt import doing
from kernbench_core.runs.options import BENCH, MACHINE, RunCall, command_options

#: Options of a run that no point of a sweep has: those that write files, and those that say what is varied.
_NOT_OF_POINTS = tuple(name for name, option in command_options(RunCall).items() if not option.kept)


@click.command(cls=GroupedCommand)
@click.argument("bench", metavar="BENCH|PLAN.yaml|DIR", shell_complete=completed_by("benches"))
@click.argument("arguments", metavar="[-- ARGS]", nargs=-1, type=click.UNPROCESSED)
@with_parameters(*grouped(
    MACHINE,
    Declared("--set", "sets", metavar="KEY=VALUES", multiple=True, cls=click.RichOption,
             help="Vary, or set, a configuration key; repeatable."),
    Declared("--topology", metavar="NAMES", cls=click.RichOption, help="The machine, or several.",
             shell_complete=completed_by("presets")),
    Declared("--components", metavar="FILE", cls=click.RichOption,
             help="A YAML file merged over every machine, to replace components."),
))  # fmt: skip
@with_parameters(*grouped(
    BENCH,
    Declared("-p", "params", metavar="NAME=VALUES", multiple=True, help="Vary, or set, a parameter; repeatable."),
))  # fmt: skip
@with_parameters(*grouped(
    "Points",
    Declared("--where", metavar="EXPR", multiple=True, help="Skip points for which this is false; repeatable."),
    Declared("--objective", "objectives", metavar="EXPR[,EXPR]", multiple=True,
             help="Figures to optimise or compare, such as time; repeatable."),
    Declared("--figures", metavar="FILE.py", help="Functions (config, figures) for --objective."),
    Declared("--sample", metavar="HOW", help="Points: grid, random:N or lhs:N. [default: grid]"),
    Declared("--search", metavar="HOW", help="Let Optuna choose points: nsga2:N, tpe:N or random:N trials."),
    Declared("--sample-seed", "seed", type=whole(0), metavar="N", help="Seed of --sample and --search."),
    Declared("--retime", is_flag=True, default=None,
             help="Time points that differ in --set alone again from one recorded run."),
    Declared("--fidelity", metavar="auto[:K]", help="Screen all points coarsely, then run the best (K) in full."),
))  # fmt: skip
@with_parameters(*grouped(
    "Processes",
    Declared("-j", "processes", type=whole(1), metavar="N", help="Number of processes. [default: one per core]"),
    Declared("--scheduler", metavar="tcp://HOST:PORT", help="Run the points on the workers of this Dask scheduler."),
    Declared("--patience", "patience_s", type=duration("5 min", 1e-9), metavar="TIME",
             help="Wait this long for the scheduler and its workers. [default: 60 s]"),
))  # fmt: skip
@with_parameters(*grouped(
    "Folder",
    Declared("-o", "folder", metavar="DIR", help="Save each point as it ends, and the tables, in this folder."),
    Declared("--report", metavar="FILE", help="Write the page of the sweep at its end; needs -o.",
             shell_complete=completed_by("files")),
    Declared("--resume", is_flag=True, help="Continue the sweep in DIR."),
    Declared("--retry-failed", is_flag=True, help="Run failed points again."),
    Declared("--retry-changed", is_flag=True, help="Run points with changed files or code again."),
    Declared("--cached", is_flag=True, default=None, help="Take points from the user's cache, and store them there."),
))  # fmt: skip
@record_options(RunCall, but=_NOT_OF_POINTS)
@record_options(ShakeOptions)
@with_parameters(JSON, QUIET)
@click.pass_obj
def sweep(
    shell: Shell, /, bench: str, folder: str | None, report: str | None, processes: int | None, scheduler: str | None,
    patience_s: float | None, resume: bool, retry_failed: bool, retry_changed: bool, as_json: bool,
    quiet: bool, **asked: Any,
) -> int:  # fmt: skip
    """Run BENCH over machines and parameters. VALUES are lists (16,32) or ranges (100..800GB/s:log:4, 1..64:pow2)."""
    _check_where(processes, scheduler, patience_s, asked["search"])
    with doing("loading kernbench"):
        from kernbench_builtin.sweeps.cli.session import SweepSession

    with doing("planning the sweep"):
        session = SweepSession.of(shell, bench, folder, resume or retry_failed or retry_changed, as_json, quiet, asked)
        page = None if report is None else session.page(report)
    patience = {} if patience_s is None else {"patience_s": patience_s}
    code = session.run(
        processes=processes, scheduler=scheduler, retry_failed=retry_failed, retry_changed=retry_changed, **patience
    )
    if page is not None:
        session.write_page(page, str(report))
    return code


def _check_where(processes: int | None, scheduler: str | None, patience_s: float | None, search: str | None) -> None:
    """Raise UsageError for what says in two ways where points are carried out."""
    if scheduler is not None and processes is not None and search is None:
        raise UsageError("-j must be left out with --scheduler, whose workers say how many points run at once.")
    if scheduler is None and patience_s is not None:
        raise UsageError("--patience must be given with --scheduler; leave it out.")
