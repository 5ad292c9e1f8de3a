"""`kernbench run`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import rich_click as click

from kernbench_core.cli.option_types import completed_by
from kernbench_core.cli.options import JSON, PARAMS, QUIET, VERBOSE, record_options, with_parameters
from kernbench_core.cli.run_help import RunCommand
from kernbench_core.cli.shell import Shell
from kernbench_core.errors import UsageError
from kernbench_core.process.interrupt import doing
from kernbench_core.runs.options import RunCall

if TYPE_CHECKING:
    from kernbench_core.runs.bench_run import RunInterrupted
    from kernbench_core.runs.result import RunResult

_Answer = TypeVar("_Answer")
_Tell = Callable[[Any], None]
INTERRUPTED = 130
_EXAMPLES = """\
  kernbench run gemm -p M=1024 --topology tiny
  kernbench run my_kernel.py --report page.html"""


@attrs.frozen
class Look:
    """How a result is printed: as one JSON object, in one line, or with everything that is known."""

    as_json: bool = False
    quiet: bool = False
    verbose: bool = False

    def __attrs_post_init__(self) -> None:
        if self.quiet and self.verbose:
            raise UsageError("options -q and -v exclude each other; give one of them.")


@click.command(cls=RunCommand, epilog=_EXAMPLES)
@click.argument("bench", metavar="BENCH", shell_complete=completed_by("benches"))
@PARAMS
@record_options(RunCall)
@with_parameters(JSON, QUIET, VERBOSE)
@click.pass_obj
def run(
    shell: Shell, /, bench: str, params: tuple[str, ...], as_json: bool, quiet: bool, verbose: bool, **asked: Any
) -> int:
    """Run BENCH, a name, FILE.py or FILE.py:FUNCTION: how long it takes, why, and whether it is right."""
    from kernbench_core.runs.parts import parts_of

    with ExitStack() as stack:
        title = f"{Path(bench).name} on {asked['topology']}"
        around = [stack.enter_context(part.at_terminal(shell, asked, title)) for part in parts_of(shell.plugins)]
        code = _run(shell, bench, params, Look(as_json, quiet, verbose), asked)
        if code in (0, 1):
            for show in (each for each in around if each is not None):
                show()
    return code


def _run(shell: Shell, bench: str, params: tuple[str, ...], look: Look, asked: dict[str, Any]) -> int:
    """Run a bench and print the result; return the exit code."""
    with doing("loading kernbench"):
        from kernbench_core.host.bench import parse_assignments
        from kernbench_core.runs.bench_run import RunInterrupted, StrictError
        from kernbench_core.runs.bench_run import run as run_bench

    def carry_out(on_progress: _Tell | None) -> RunResult:
        values = parse_assignments(params, "-p")
        return run_bench(bench, params=values, on_progress=on_progress, plugins=shell.plugins, **asked)

    try:
        result = with_progress(carry_out, Path(bench).name, look)
    except RunInterrupted as interruption:
        print_run(interruption.result, look, shell)
        tell_interruption(interruption, shell)
        return INTERRUPTED
    except StrictError as refusal:
        print_run(refusal.result, look, shell)
        shell.error(str(refusal))
        return refusal.exit_code
    print_run(result, look, shell)
    if result.cache_key is not None and (look.verbose or result.from_cache):
        shell.note(result.cache_note)
    return 0 if result.right else 1


def with_progress(carry_out: Callable[[_Tell | None], _Answer], title: str, look: Look) -> _Answer:
    """Call `carry_out` under a progress display, if that shows anything; with --json, kernels print to stderr."""
    from kernbench_core.runs.progress import ProgressDisplay

    prints = redirect_stdout(sys.stderr) if look.as_json else nullcontext()
    with ProgressDisplay(title, enabled=not look.quiet) as display, prints:
        return carry_out(display.update if display.active else None)


def tell_interruption(interruption: RunInterrupted, shell: Shell) -> None:
    """Say below a result what was interrupted: the line of the program, or the writing of files."""
    if not interruption.result.interrupted:
        shell.error(str(interruption))
    elif interruption.line is not None:
        shell.note(str(interruption))


@doing("printing the result")
def print_run(result: RunResult, look: Look, shell: Shell) -> None:
    """Print a result, as it is asked for."""
    from kernbench_core.runs.parts import show_answers, show_result

    if look.as_json:
        click.echo(result.json_text())
        return
    if look.quiet:
        from kernbench_core.runs.summary import print_summary

        print_summary(result, sys.stdout)
        return
    from kernbench_core.runs.text_report import make_console

    console = make_console(sys.stdout)
    show_result(result, console, shell.plugins, verbose=look.verbose)
    show_answers(result, console, shell.plugins, verbose=look.verbose)
