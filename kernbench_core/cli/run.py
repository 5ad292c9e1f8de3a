"""`kernbench run` and `kernbench rerun`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from kernbench_core.cli.shell import Shell
from kernbench_core.cli.streams import own_streams
from kernbench_core.errors import UsageError
from kernbench_core.process.interrupt import doing
from kernbench_core.process.terminal import shown

if TYPE_CHECKING:
    from kernbench_core.runs.reruns import Rerun
    from kernbench_core.runs.result import RunResult

_INTERRUPTED = 130


class Whole(click.ParamType):  # type: ignore[type-arg]  # generic in the stubs only
    """An integer of at least `least`, refused in our words."""

    name = "integer"

    def __init__(self, least: int) -> None:
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the integer; raise UsageError naming the option."""
        try:
            number = int(value)
        except ValueError:
            number = self.least - 1
        if number < self.least:
            option = param.opts[0] if param is not None else "the option"
            raise UsageError(f"option {option} must be an integer of at least {self.least}, not {value!r}.")
        return number


@click.command()
@click.argument("bench", metavar="BENCH")
@click.option("-p", "params", metavar="NAME=VALUE", multiple=True, help="Set a parameter of the bench; repeatable.")
@click.option(
    "--topology", metavar="PRESET|FILE", default="default", show_default=True, help="The machine to simulate."
)
@click.option("--components", metavar="FILE", help="A YAML file merged over the topology, to replace components.")
@click.option("--set", "sets", metavar="KEY=VALUE", multiple=True, help="Set one configuration key; repeatable.")
@click.option("--device", metavar="all|sip:N", default="all", show_default=True, help="The PEs that run programs.")
@click.option("--verify-data", is_flag=True, help="Compute the data too, and compare it with the bench's reference.")
@click.option("--verify-ops", is_flag=True, help="Compute every op anew, by itself, and compare; name the first wrong.")
@click.option("--no-data", is_flag=True, help="Keep shapes only: timing without data.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@click.option(
    "--seed", metavar="N", type=Whole(0), default=0, show_default=True, help="Seed of the bench's random inputs."
)
@click.option("--explain", is_flag=True, help="Tell where the time went: critical path, queueing, use, peaks.")
@click.option("--trace", metavar="FILE", help="Write a timeline (.json or .json.gz) for Perfetto.")
@click.option("--tcm-map", is_flag=True, help="Show what the scratchpads held over time, and at the peak.")
@click.option("--strict-races", is_flag=True, help="Exit with 7 when uses of memory race (hazards).")
@click.option(
    "--race-by",
    type=click.Choice(["pe", "program"]),
    default="pe",
    show_default=True,
    help="What is in order within a launch: all that a PE does, or what one program does.",
)
@click.option("--out", metavar="DIR", help="Write manifest, result and op log into a folder.")
@click.option("--bundle", metavar="FILE", help="Write all it takes to run this elsewhere into one file (.tar.gz).")
@click.option("--max-events", metavar="N", type=Whole(1), help="Stop after this many simulator events.")
@click.option("--max-sim-time", metavar="T", help="Stop at this simulated time, as '5 ms'.")
@click.option("--timeout", metavar="T", help="Stop after this wall time, as '60 s'.")
@click.option("-q", "--quiet", is_flag=True, help="Print one line, and no progress.")
@click.option("-v", "--verbose", is_flag=True, help="Print everything that is known.")
@click.pass_obj
def run(shell: Shell, /, bench: str, params: tuple[str, ...], sets: tuple[str, ...], **options: Any) -> int:
    """Run BENCH, a registered name or a .py file, and print how long it takes, why, and whether it is right."""
    from kernbench_core.host.bench import parse_assignments
    from kernbench_core.runs.bench_run import RaceError, RunInterrupted
    from kernbench_core.runs.bench_run import run as run_bench

    if options["quiet"] and options["verbose"]:
        raise UsageError("options -q and -v exclude each other; give one of them.")
    max_sim_ns = _time("--max-sim-time", options["max_sim_time"], "5 ms")
    timeout_s = seconds_of(options["timeout"])

    def carry_out(on_progress: Callable[[Any], None]) -> RunResult:
        return run_bench(
            bench,
            options["topology"],
            parse_assignments(params, "-p"),
            components=options["components"],
            set=sets,
            device=options["device"],
            verify_data=options["verify_data"],
            verify_ops=options["verify_ops"],
            data=not options["no_data"],
            seed=options["seed"],
            trace=options["trace"],
            out=options["out"],
            bundle=options["bundle"],
            explain=options["explain"],
            tcm_map=options["tcm_map"],
            strict_races=options["strict_races"],
            race_by=options["race_by"],
            max_events=options["max_events"],
            max_sim_ns=max_sim_ns,
            timeout_s=timeout_s,
            on_progress=on_progress,
            plugins=shell.plugins,
        )

    try:
        result = _with_progress(carry_out, Path(bench).name, options)
    except RunInterrupted as interruption:
        _print(interruption.result, options)
        if not interruption.result.interrupted:
            shell.error(str(interruption))
        return _INTERRUPTED
    except RaceError as races:
        _print(races.result, options)
        shell.error(str(races))
        return races.exit_code
    _print(result, options)
    return 0 if result.right else 1


@click.command()
@click.argument("manifest", metavar="MANIFEST|BUNDLE")
@click.option("--trust", is_flag=True, help="Run a bench that lies outside of the manifest's folder, or a function.")
@click.option("--timeout", metavar="T", help="Stop after this wall time, as '60 s', instead of the manifest's.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of sentences.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.pass_obj
def rerun(shell: Shell, /, manifest: str, **options: Any) -> int:
    """Run again what a manifest, or the one in a bundle, describes: the same op-log hash, or what differs."""
    from kernbench_core.runs.bench_run import RunInterrupted
    from kernbench_core.runs.reruns import rerun as rerun_manifest

    timeout_s = seconds_of(options["timeout"])
    try:
        again = _with_progress(
            lambda on_progress: rerun_manifest(
                manifest, trust=options["trust"], timeout_s=timeout_s, on_progress=on_progress, plugins=shell.plugins
            ),
            Path(manifest).name,
            options,
        )
    except RunInterrupted as interruption:
        if options["as_json"]:
            _echo_rerun(None, (), interruption.result)
        else:
            _print(interruption.result, {**options, "verbose": False})
        return _INTERRUPTED
    if options["as_json"]:
        _echo_rerun(again.same, again.differences, again.result)
    else:
        _tell_rerun(again)
    return 0 if again.same and again.result.right else 1


def _tell_rerun(again: Rerun) -> None:
    """Say whether the op log is the same, and what is wrong with the data."""
    from kernbench_core.runs.text_report import verdict

    result = again.result
    if again.same:
        click.echo(f"same op log: {result.op_log_sha256} ({result.ops:,} ops)")
        for difference in again.differences:
            click.echo(shown(f"  though {difference}"))
    else:
        click.echo("the op log differs:")
        for difference in again.differences:
            click.echo(shown(f"  {difference}"))
    if not result.right:
        click.echo(shown(verdict(result).plain))
        for verification in (result.verification, result.op_verification):
            for line in "\n".join(() if verification is None else verification.failures).splitlines():
                click.echo(shown(f"  {line}"))


def _echo_rerun(same: bool | None, differences: Sequence[str], result: RunResult) -> None:
    """Print the object of --json; `same` is None when the run did not come to its end."""
    from kernbench_core.runs.result import json_text

    found = {"same": same, "differences": list(differences), "result": result.to_json()}
    click.echo(json_text({"schema": "kernbench.rerun/1", **found}))


def _with_progress(carry_out: Callable[[Callable[[Any], None]], Any], title: str, options: dict[str, Any]) -> Any:
    """Call `carry_out` under a progress display; with --json, what kernels print goes to stderr."""
    from kernbench_core.runs.progress import ProgressDisplay

    prints = redirect_stdout(sys.stderr) if options["as_json"] else nullcontext()
    with ProgressDisplay(title, enabled=not options["quiet"]) as display, own_streams(), prints:
        return carry_out(display.update)


@doing("printing the result")
def _print(result: RunResult, options: dict[str, Any]) -> None:
    from kernbench_core.runs.result import json_text
    from kernbench_core.runs.text_report import make_console, print_result, print_summary, print_tcm_map

    if options["as_json"]:
        click.echo(json_text(result.to_json()))
        return
    console = make_console(sys.stdout)
    if options["quiet"]:
        print_summary(result, console)
    else:
        print_result(result, console, verbose=options["verbose"])
    if result.explain is not None:
        from kernbench_core.runs.explanation_report import print_explanation

        print_explanation(result.explain, console, verbose=options["verbose"])
    if result.tcm_map is not None:
        print_tcm_map(result.tcm_map, console)


def seconds_of(timeout: str | None) -> float | None:
    """Read the option --timeout, in s; UsageError where it is no time."""
    found = _time("--timeout", timeout, "60 s")
    return None if found is None else found * 1e-9


def _time(option: str, text: str | None, example: str) -> float | None:
    """Read a time with its unit, in ns; raise UsageError naming the option."""
    from kernbench_core.units import parse_quantity

    if text is None:
        return None
    try:
        found = float(parse_quantity(text, "time", positive=True))
    except ValueError:
        found = 0.0
    if not found * 1e-9:  # also what no float tells from nothing
        raise UsageError(
            f"option {option} must be a positive time with its unit, as {example!r}, not {text!r}."
        )
    return found
