"""`kernbench triton`."""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import rich_click as click

from kernbench_builtin.machines.figures.part import check_links
from kernbench_core.cli.options import JSON, QUIET, VERBOSE, record_options, with_parameters, with_parts
from kernbench_core.cli.run import INTERRUPTED, tell_interruption
from kernbench_core.cli.run_help import GroupedCommand
from kernbench_core.cli.shell import Shell
from kernbench_core.errors import UsageError
from kernbench_core.process.interrupt import doing
from kernbench_core.runs.options import RunCall

if TYPE_CHECKING:
    from kernbench_builtin.triton.session import TritonRun

_MODULE = "kernbench.module"
#: Options of `kernbench run` that a script has not.
_NOT_OF_SCRIPTS = ("race_by", "materialize", "verify_data", "grid", "resident")
_OF_RUN = ("-p", *(f"--{name.replace('_', '-')}" for name in _NOT_OF_SCRIPTS))
#: How alike two options are, from 0 to 1, of which one is a slip for the other.
_SLIP = 0.85
#: Options for which a script has to run: those that write files.
_FILES = ("trace", "out", "report")


class ScriptCommand(GroupedCommand):
    """A command that ends with a script and its arguments, or with `-m`, a module and its arguments, as Python's do."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return its parameters, and those of the parts of runs."""
        return with_parts(ctx, super().get_params(ctx))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the arguments apart; all behind `-m MODULE` are the module's."""
        at = self._module_at(ctx, args)
        if at is not None:
            if len(args) < at + 2:
                raise click.UsageError("option -m must be followed by a module.", ctx)
            ctx.meta[_MODULE] = args[at + 1 :]
            args = args[:at]
        self._require_meant(ctx, args)
        return super().parse_args(ctx, args)

    def _require_meant(self, ctx: click.Context, args: list[str]) -> None:
        """Refuse what is hardly meant for the script: an option but for a slip, and one that `kernbench run` has."""
        own = {name for each in self.get_params(ctx) for name in (*each.opts, *each.secondary_opts)}
        for arg in args[: args.index("--")] if "--" in args else args:
            name = arg.partition("=")[0]
            if not (name.startswith("--") or name in _OF_RUN) or name in own:
                continue
            near = get_close_matches(name, own, 1, _SLIP)
            if near or name in _OF_RUN:
                what = f"Did you mean {near[0]!r}?" if near else "It is one of kernbench run."
                raise click.UsageError(
                    f"No such option {name!r}. {what} Write -- before the options of the script.", ctx
                )

    def _module_at(self, ctx: click.Context, args: list[str]) -> int | None:
        """Return where `-m` stands; None where a script comes before."""
        takes = {
            name for each in self.get_params(ctx) if isinstance(each, click.Option) and not each.is_flag
            for name in each.opts
        }  # fmt: skip
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] not in ("-m", "--"):
            at += 2 if args[at] in takes else 1
        return at if at < len(args) and args[at] == "-m" else None


@click.command(cls=ScriptCommand, context_settings={"ignore_unknown_options": True})
@click.argument("script", metavar="FILE.py|-m MODULE", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--autotune",
    type=click.Choice(("best", "all")),
    default="best",
    help="For triton.autotune, print the best configuration, or all.",
)
@click.option(
    "--points", type=click.IntRange(0), metavar="N", help="Run the first N points of each triton.testing benchmark."
)
@record_options(RunCall, but=_NOT_OF_SCRIPTS)
@JSON.but(help="Print one JSON object; the script's output goes to stderr.")
@with_parameters(QUIET, VERBOSE)
@click.pass_context
def triton(
    ctx: click.Context, /, script: tuple[str, ...], autotune: str, points: int | None, as_json: bool,
    quiet: bool, verbose: bool, **asked: Any,
) -> int:  # fmt: skip
    """Run a Triton script unchanged, with its arguments: each launch is simulated. The exit code is the script's.

    Options of kernbench may come before or after FILE.py; everything after -- goes to the script.
    """
    shell: Shell = ctx.obj
    module = ctx.meta.get(_MODULE)
    given = list(module or script)
    if not given:
        raise UsageError("kernbench triton must be followed by a script or by -m MODULE; name one.")
    if quiet and verbose:
        raise UsageError("options -q and -v exclude each other; give one of them.")
    check_links(asked, as_json=as_json)
    with doing("loading kernbench"):
        from kernbench_builtin.triton.script import Script
        from kernbench_core.runs.bench_run import RunInterrupted
        from kernbench_core.runs.progress import ProgressDisplay

    topology = asked.pop("topology")
    cached, depends = asked.pop("cached", False), asked.pop("depends")
    program = Script(given[0], given[1:], is_module=module is not None)
    display = ProgressDisplay(program.title, enabled=not quiet, rows=not as_json)
    told = {"on_progress": display.update} if display.active else {}
    session = program.session(topology, {**asked, **told, "plugins": shell.plugins}, points)

    def run_script() -> int:
        try:
            with display, redirect_stdout(sys.stderr) if as_json else nullcontext():
                code = program.run(session)
        except RunInterrupted as interruption:
            session.result = interruption.result
            _print(shell, session, INTERRUPTED, autotune, as_json, quiet, verbose)
            tell_interruption(interruption, shell)
            return INTERRUPTED
        _print(shell, session, code, autotune, as_json, quiet, verbose)
        wrong = session.result is not None and not session.result.right
        return code or (1 if wrong else 0)

    if not cached or any(asked.get(name) for name in _FILES):
        return run_script()
    from kernbench_core.runs import configure

    config = configure(shell.plugins, topology, asked["components"], asked["set"])
    of_command = {"autotune": autotune, "points": points, "json": as_json, "quiet": quiet, "verbose": verbose}
    options = {**asked, **of_command, "depends": depends, "script": (*program.files, *given)}
    return shell.replay("triton", options, config, run_script)


@doing("printing the result")
def _print(
    shell: Shell, session: TritonRun, code: int, autotune: str, as_json: bool, quiet: bool, verbose: bool
) -> None:
    from kernbench_builtin.triton.text import print_script, script_json
    from kernbench_core.runs.result import json_text
    from kernbench_core.runs.text_report import make_console

    if as_json:
        click.echo(json_text(script_json(session, code)))
        return
    console = make_console(sys.stdout)
    print_script(session, console, shell.plugins, autotune=autotune, quiet=quiet, verbose=verbose)
