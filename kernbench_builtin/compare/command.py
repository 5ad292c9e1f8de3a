"""`kernbench diff`: what moved from one run to another."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import rich_click as click

from kernbench_builtin.compare.limit import SlowerLimit, slower_limit
from kernbench_core.cli.columns import width, wrapped
from kernbench_core.cli.option_types import completed_by, whole
from kernbench_core.cli.options import (
    COMPONENTS,
    JSON,
    PARAMS,
    QUIET,
    SETS,
    TOPOLOGY,
    Declared,
    record_options,
    with_parameters,
)
from kernbench_core.cli.run import Look
from kernbench_core.cli.run_help import RunCommand
from kernbench_core.cli.shell import Shell
from kernbench_core.errors import UsageError
from kernbench_core.process.interrupt import doing
from kernbench_core.process.terminal import shown
from kernbench_core.runs.options import RunCall

if TYPE_CHECKING:
    from kernbench_builtin.compare import RunComparison
    from kernbench_builtin.compare.sides import ComparedSide
    from kernbench_core.runs.parts import RunPart

#: The part of runs that writes pages.
_PAGES: Final = "report"
RUN_B: Final = "Run B"
#: Options of a run that write files of it, or say what of it is told.
_NOT_HERE: Final = ("strict_races", "strict_python", "out", "outputs")


class DiffCommand(RunCommand):
    """A command with the options of runs, but for those of parts that look on or tell something."""

    def takes(self, part: type[RunPart]) -> bool:
        """Whether a part says how a run comes about, as from a cache."""
        from kernbench_core.runs import parts

        return part.around is not parts.RunPart.around


@click.command(cls=DiffCommand)
@click.argument("what", metavar="A B|BENCH", nargs=-1, required=True, shell_complete=completed_by("files"))
@PARAMS
@SETS.but(names=("--b-set",), help="Set one configuration key of run B only; repeatable.", panel=RUN_B)
@PARAMS.but(names=("--b-param",), help="Set a parameter of run B only; repeatable.", panel=RUN_B, shell_complete=None)
@TOPOLOGY.but(names=("--b-topology",), default=None, help="The machine of run B, if it is another one.", panel=RUN_B)
@COMPONENTS.but(
    names=("--b-components",), help="The --components of run B, if it is another file.", panel=RUN_B
)
@Declared(
    "--b-bench", metavar="BENCH", help="The bench of run B, if it is another one.", panel=RUN_B,
    shell_complete=completed_by("benches"),
)  # fmt: skip
@click.option("--top", type=whole(1), metavar="N", default=5, show_default=True, help="Show N rows of each kind.")
@click.option(
    "--fail-above", "limit", type=slower_limit(), metavar="LIMIT",
    help="Exit with 1 when B is slower than A by more than this ('3%' or '50 ns').",
)
@Declared("--report", metavar="FILE", help="Write an HTML page of both runs, side by side.")
@with_parameters(JSON, QUIET)
@record_options(RunCall, but=_NOT_HERE)
@click.pass_context
def diff(
    context: click.Context, /, what: tuple[str, ...], top: int, limit: SlowerLimit | None, report: str | None,
    as_json: bool, quiet: bool, **asked: Any,
) -> int:  # fmt: skip
    """Compare runs A and B, saved with --out or --json; or run BENCH twice, the second time with the --b- options."""
    shell: Shell = context.obj
    known = [each for each in context.command.get_params(context) if each.name in asked]
    _check(what, [each.opts[0] for each in known if _was_given(context, each)])
    look = Look(as_json, quiet)
    with doing("loading kernbench"):
        from kernbench_builtin.compare import compare
        from kernbench_builtin.compare.sides import run_sides, saved_side
        from kernbench_core.process.whole_files import check_file

    page = None if report is None else check_file("report", Path(report), ".html")
    if page is not None:
        shell.plugins.run_parts.load(_PAGES)  # before any run
    with ExitStack() as stack:
        if len(what) == 2:
            with doing("reading the runs"):
                sides = [saved_side(each) for each in what]
        else:
            folder = None if page is None else Path(stack.enter_context(TemporaryDirectory(prefix="kernbench-")))
            sides = [*run_sides(shell, what[0], asked, folder, look)]
        with doing("comparing the runs"):
            found = compare(sides[0].figures, sides[1].figures)
        if page is not None:
            _write(shell, page, sides)
    return _print_comparison(shell, found, sides, top, limit, look, saved=len(what) == 2)


def _was_given(context: click.Context, option: click.Parameter) -> bool:
    source = context.get_parameter_source(str(option.name))
    return source is not None and source.name == "COMMANDLINE"


def _check(what: Sequence[str], given: Sequence[str]) -> None:
    """Raise UsageError for what is neither two saved runs nor a bench with what is otherwise in B."""
    of_b = [option for option in given if option.startswith("--b-")]
    if len(what) > 2:
        raise UsageError(f"diff must be given two saved runs, or one bench, not {len(what)} names; leave some out.")
    if len(what) == 2 and given:
        raise UsageError(f"{given[0]} applies only when diff runs a bench, not to two saved runs; leave it out.")
    if len(what) == 1 and not of_b:
        raise UsageError(
            f"diff must be given a second run, not {what[0]!r} alone; give two saved runs, or a bench and changes for "
            "B, as --b-set KEY=VALUE."
        )


@doing("writing the page")
def _write(shell: Shell, page: Path, sides: Sequence[ComparedSide]) -> None:
    """Have the part of runs that writes pages write one of both."""
    runs = [(side.figures.name, side.saved) for side in sides]
    shell.plugins.run_parts.load(_PAGES).write_saved(page, runs, shell.plugins)


@doing("printing the result")
def _print_comparison(
    shell: Shell, found: RunComparison, sides: Sequence[ComparedSide], top: int, limit: SlowerLimit | None, look: Look,
    *, saved: bool,
) -> int:  # fmt: skip
    """Print the comparison, of saved runs with what they are; return 1 where B is too slow, or data are wrong."""
    before, after = found.before, found.after
    if limit is not None and (before.interrupted or after.interrupted):
        raise UsageError("--fail-above must be given runs that ended, and one was interrupted; run it again.")
    fails = limit is not None and found.differs is not False and not limit.allows(*found.totals_ns)
    if look.as_json:
        from kernbench_core.runs.result import json_text

        click.echo(json_text({**found.to_json(), "fail_above": limit and limit.text, "fails": fails}))
    else:
        lines = found.verdict
        if look.quiet:
            spread = [found.spread] if found.differs is not None and not found.same else []
            told = "; ".join(line.rstrip(".") for line in (*lines[: len(found.notes) + 1], *spread))
            line = f"{before.name} → {after.name}: {told}"
            lines = wrapped(line, width(), "  ") if sys.stdout.isatty() else [line]
        else:
            benches = [figures.causes.get("bench", {}).get("bench") for figures in (before, after)]
            heads = [
                f"{side}  {figures.name}{f': {bench} on {figures.topology}' if saved else ''}"
                for side, figures, bench in zip("AB", (before, after), benches, strict=True)
            ]
            details = found.details(top)
            lines = [*heads, *details, *([""] if details else []), *lines]  # what scrolls away is not the answer
        for line in lines:
            click.echo(shown(line))
    if fails and limit is not None:
        shell.error(f"B must not be slower than A by more than {limit.text}: {lines_of_total(found)}.")
    return 1 if fails or not all(side.right for side in sides) else 0


def lines_of_total(found: RunComparison) -> str:
    """Return the line of the total time."""
    from kernbench_builtin.compare.formatting import total_line

    return total_line(found.before.total_ns, found.after.total_ns)
