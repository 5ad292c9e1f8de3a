"""`kernbench trace`: a saved run as a trace for a viewer, or shown in one at once."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from kernbench_builtin.pages.parts import TimelineOptions
from kernbench_builtin.pages.plugin import EXPORTERS
from kernbench_builtin.pages.timeline.levels import LEVELS, LEVELS_IN_WORDS, TIMELINE
from kernbench_core.cli.option_types import completed_by, port
from kernbench_core.cli.options import option_of
from kernbench_core.cli.shell import Shell
from kernbench_core.errors import UsageError
from kernbench_core.process.interrupt import doing
from kernbench_core.process.terminal import shown
from kernbench_core.runs.options import command_options
from kernbench_core.units import format_bytes, format_time
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kernbench_builtin.pages.timeline import Timeline
    from kernbench_builtin.pages.timeline.window import TimeWindow


@click.command()
@click.argument("run", metavar="RUN", shell_complete=completed_by("files"))
@click.option(
    "-o", "--output", metavar="FILE", help="The file: .pftrace, .json or a plug-in's, also .gz.",
    shell_complete=completed_by("files"),
)
@click.option(
    "--level", metavar="LEVEL", type=click.Choice(LEVELS), default=LEVELS[-1], show_default=True,
    help=f"Lowest level of the timeline: {LEVELS_IN_WORDS}.",
)
@option_of("window", command_options(TimelineOptions)["window"], None).but(panel=None)
@click.option("--open", "show", is_flag=True, help="Open it in the Perfetto UI, offline; needs kernbench[trace].")
@click.option("--port", type=port(), default=0, help="Port of --open. [default: any free one]")
@click.pass_obj
def trace(
    shell: Shell, /, run: str, output: str | None, level: str, window: str | None, show: bool, port: int
) -> None:
    """Write the timeline of RUN, a folder of run --out, as a trace, or open it."""
    with doing("loading kernbench"):
        from kernbench_builtin.pages.perfetto_ui import show as show_in_browser
        from kernbench_builtin.pages.perfetto_ui import shown_at
        from kernbench_builtin.pages.trace_file import open_trace

    if output is None and not show:
        raise UsageError("trace must be given -o FILE or --open; add one of them.")
    asked = TimelineOptions(window=window).cut_to
    with ExitStack() as stack:
        folder = None if output else stack.enter_context(tempfile.TemporaryDirectory(prefix="kernbench-"))
        file = open_trace(output or f"{folder}/run.pftrace", shell.plugins.of(EXPORTERS))
        if file.takes != "timeline":
            raise UsageError(
                f"trace file must be of a format that takes a timeline, not {brief(output)}; use run --trace."
            )
        page = stack.enter_context(shown_at(file.path, port)) if show else None
        with doing("reading the run"):
            saved = read_timeline(run)
            timeline = _cut(saved, level, asked)
        for note in _unknown(saved, level, asked):
            click.echo(shown(note), err=True)
        with doing("writing the trace"):
            file.write(None, timeline=timeline)
        if output is not None:
            click.echo(shown(f"{output}: {format_bytes(file.path.stat().st_size)}, {len(timeline.spans):,} spans"))
        if page is not None:
            show_in_browser(page)


def read_timeline(run: str) -> Timeline:
    """Return the timeline in the folder of a run; UsageError where there is neither, or another kernbench wrote it."""
    from kernbench_builtin.pages.report.saved_runs import check_version
    from kernbench_builtin.pages.timeline import load

    if not Path(run).is_dir():
        raise UsageError(f"RUN must be a folder that `run --out` wrote, not {brief(run)}.")
    check_version(Path(run))
    return load(Path(run) / TIMELINE)


def _cut(timeline: Timeline, level: str, window: TimeWindow | None) -> Timeline:
    """Return what is asked for of a timeline."""
    if window is not None:
        timeline = timeline.window(window.from_ns, window.to_ns)
    return timeline.level(level)


def _unknown(timeline: Timeline, level: str, window: TimeWindow | None) -> Iterator[str]:
    """Say what is asked for of a timeline that its run did not note, a sentence each."""
    if timeline.known_ns is not None:
        since, until = timeline.known_ns
        if window is None or window.from_ns < since or window.to_ns > until:
            yield (
                f"The timeline of this run is known from {format_time(since)} to {format_time(until)} only, and so is "
                "the trace; run again without --window for the rest."
            )
    if LEVELS.index(timeline.depth) < LEVELS.index(level):
        yield (
            f"The timeline of this run goes down to level {timeline.depth} only, not {level}, and so does the trace; "
            f"run again with --level {level} for the rest."
        )
