"""`kernbench report`: saved runs as one page to look at."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from kernbench_core.cli.option_types import completed_by
from kernbench_core.cli.shell import Shell
from kernbench_core.process.interrupt import doing
from kernbench_core.process.terminal import shown


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, shell_complete=completed_by("files"))
@click.option(
    "-o", "--output", metavar="FILE", required=True, help="The HTML file to write.",
    shell_complete=completed_by("files"),
)
@click.pass_obj
def report(shell: Shell, runs: tuple[str, ...], output: str) -> None:
    """Write one offline HTML page of one or several runs, each a folder that `run --out` wrote, side by side."""
    with doing("loading kernbench"):
        from kernbench_core.process.whole_files import check_file
        from kernbench_core.report.saved_runs import read_run
        from kernbench_core.runs.looks import write_report

    path = check_file("report", Path(output), ".html")
    with doing("reading the runs"):
        pages = [read_run(Path(run), run) for run in runs]
    with doing("writing the page"):
        write_report(path, pages, shell.plugins)
    click.echo(shown(f"{output}: {'1 run' if len(pages) == 1 else f'{len(pages)} runs side by side'}"))
