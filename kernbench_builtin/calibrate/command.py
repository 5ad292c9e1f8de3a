"""`kernbench calibrate`: fit a machine to measurements, or compare one that comes with it with what was published."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from kernbench_core.cli.option_types import completed_by, whole
from kernbench_core.cli.options import CACHED, JOBS, JSON, QUIET, SETS, TIMEOUT, TOPOLOGY, Declared, parameters
from kernbench_core.cli.shell import Shell
from kernbench_core.errors import UsageError
from kernbench_core.process import WallTime

if TYPE_CHECKING:
    from kernbench_core.topology import Config

_HELP = """Fit a machine's parameters to measurements, within published limits.

LOG is nccl-tests' text output, or a CSV of collectives, matrix products, copies or memory accesses. Prints the fitted
parameters and each measured time beside the simulated one; -o writes an overlay for --topology. --check compares a
built-in system with published figures."""


@click.pass_obj
def _calibrate(shell: Shell, /, timeout_s: float | None, cached: bool, **options: Any) -> int:
    with WallTime(timeout_s).spent_on("calibrating"):
        if cached and options["output"] is None:
            asked = {name: value for name, value in options.items() if name not in ("jobs", "quiet", "force")}
            return shell.replay("calibrate", asked, _machine(shell, options), lambda: _answer(shell, options))
        return _answer(shell, options)


def _machine(shell: Shell, options: dict[str, Any]) -> Config:
    """Return the configuration of the machine that is fitted, or compared with what was published of it."""
    from kernbench_builtin.calibrate.systems import system_of
    from kernbench_core.runs import configure

    if options["check"] is not None:
        return configure(shell.plugins, system_of(options["check"]).topology)
    return configure(shell.plugins, options["topology"], None, options["sets"])


def _answer(shell: Shell, options: dict[str, Any]) -> int:
    return _fit(shell, options) if options["check"] is None else _check(shell, options)


def _fit(shell: Shell, options: dict[str, Any]) -> int:
    """Fit, print, and write the overlay; 1 for a fit that explains nothing, which is not written."""
    from kernbench_builtin.calibrate.calibration import calibrate, open_logs
    from kernbench_builtin.calibrate.overlay import overlay_text, require_free, write_overlay
    from kernbench_builtin.calibrate.report import parameters, residuals, summary, to_json
    from kernbench_core.calibration import LogOptions, MachineChoice
    from kernbench_core.runs import json_text

    if not options["logs"]:
        raise UsageError("kernbench calibrate must be given at least one LOG, or --check NAME; see --help.")
    output = None if options["output"] is None else Path(options["output"])
    if output is not None:
        require_free(output, [Path(log) for log in options["logs"]], force=options["force"])
    given = LogOptions(
        options["collective"], options["ranks"], options["algo"], options["config"],
        _simulate_to(options["simulate_to"]), options["jobs"],
    )  # fmt: skip
    logs = open_logs([Path(one) for one in options["logs"]], shell.plugins, given, options["form"])
    machine = MachineChoice(options["topology"], tuple(options["sets"]))
    tell = _Progress(shown=not options["quiet"] and sys.stderr.isatty())
    found = calibrate(logs, machine, options["fit"], on_round=tell.round)
    tell.done()
    code = 0 if found.refusal is None else 1
    if output is not None and not code:
        write_overlay(overlay_text(found, output, shell.plugins.topologies), output)
    written = None if output is None or code else str(output)
    if options["as_json"]:
        click.echo(json_text(to_json(found, written)))
    else:
        told = [*summary(found), *([] if written is None else [f"written to {written}"])]
        if options["quiet"]:
            click.echo(" ".join([told[0], *([] if written is None else [told[-1]])]))
        else:
            _show(residuals(found.rows), parameters(found.values), *told)
    if code:
        click.echo(f"error: {found.refusal}{'' if output is None else ' Nothing was written.'}", err=True)
    return code


def _check(shell: Shell, options: dict[str, Any]) -> int:
    """Print the published rows of a system beside what its preset takes; 1 where one is farther off than is known."""
    from kernbench_builtin.calibrate.report import compared, comparison_json
    from kernbench_builtin.calibrate.systems import compare_system, system_of
    from kernbench_core.runs import json_text

    if options["logs"]:
        raise UsageError("option --check must be given without a LOG; leave one of them out.")
    system = system_of(options["check"])
    found = compare_system(system, shell.plugins, options["jobs"])
    if options["as_json"]:
        click.echo(json_text(comparison_json(found)))
    elif options["quiet"]:
        click.echo(f"{system.title}: {found.notes[0]}")
    else:
        about = f"{system.title} (--topology {system.topology})\n{system.source}\n{system.url}"
        _show(about, compared(found), *found.notes)
    return 0 if found.kept else 1


def _show(*parts: Any) -> None:
    from rich.console import Group
    from rich.text import Text

    from kernbench_core.runs import make_console, show

    spaced: list[Any] = []
    for part in parts:
        spaced += [Text(part) if isinstance(part, str) else part, *([] if isinstance(part, str) else [Text()])]
    show(Group(*spaced), make_console(sys.stdout))


def _simulate_to(text: str) -> int:
    from kernbench_core.units import parse_quantity

    try:
        found = int(parse_quantity(text, "size", positive=True))
    except ValueError as fault:
        raise UsageError(f"option --simulate-to {fault}") from None
    if found < 4:
        raise UsageError(f"option --simulate-to must be a size of at least 4 B, not {text!r}.")
    return found


class _Progress:
    """Tell a terminal, in one line, how often all rows were simulated."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown

    def round(self, number: int) -> None:
        if self._shown:
            sys.stderr.write(f"\rsimulating all rows, round {number} ")
            sys.stderr.flush()

    def done(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


calibrate = click.RichCommand(
    name="calibrate",
    callback=_calibrate,
    params=[
        click.Argument(["logs"], metavar="[LOG]...", nargs=-1, shell_complete=completed_by("files")),
        *parameters(
            Declared("-o", "--output", metavar="FILE", help="Write the fitted machine, an overlay of --topology."),
            Declared("--force", is_flag=True, help="Overwrite FILE."),
            TOPOLOGY.but(help="The machine to start from."),
            SETS,
            Declared("--fit", metavar="NAME", multiple=True,
                     help="Fit this parameter; repeatable. [default: all that the logs determine]"),
            Declared("--format", "form", metavar="NAME",
                     help="Format of the logs. [default: detected]"),
            Declared("--collective", metavar="NAME", help="Collective, if the log names none."),
            Declared("--ranks", metavar="N", type=whole(2), help="Number of ranks, if the log names none."),
            Declared("--algo", metavar="NAME|auto",
                     help="Algorithm of collectives. [default: auto, as kernbench ccl]"),
            Declared("--config", metavar="FILE", help="A ccl.yaml, as for kernbench ccl."),
            Declared("--simulate-to", metavar="SIZE", default="64 MiB",
                     help="Simulate rows up to this size; above 4 MiB only until times grow linearly."),
            Declared("--check", metavar="NAME", help="Compare a published system with its preset, instead of fitting."),
            CACHED.but(help="Without -o: print the stored output if nothing that it depends on changed."),
            JOBS.but(help="Number of processes."), TIMEOUT, JSON, QUIET,
        ),
    ],
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
