"""`kernbench report`: saved runs, or a sweep, as one page to look at."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from kernbench_builtin.pages.plugin import FOLDERS
from kernbench_core.cli.option_types import completed_by
from kernbench_core.cli.shell import Shell
from kernbench_core.errors import UsageError
from kernbench_core.process.interrupt import doing
from kernbench_core.process.terminal import shown

_PAGE = "report.html"


@click.command()
@click.argument("folders", metavar="FOLDER...", nargs=-1, required=True, shell_complete=completed_by("files"))
@click.option(
    "-o", "--output", metavar="FILE", help=f"The HTML file. [default: {_PAGE} in FOLDER]",
    shell_complete=completed_by("files"),
)
@click.option(
    "--point", "points", metavar="KEY", multiple=True,
    help="Run this point of a sweep again, for a page of its own; front: the Pareto-optimal points.",
)
@click.pass_obj
def report(shell: Shell, folders: tuple[str, ...], output: str | None, points: tuple[str, ...]) -> None:
    """Write one offline HTML page of runs side by side, or of a sweep. FOLDER is from run --out or sweep -o."""
    with doing("loading kernbench"):
        from kernbench_core.process.whole_files import check_file

    if output is None and len(folders) > 1:
        raise UsageError(f"-o must name the output file when {len(folders)} folders are given.")
    kinds = [shell.plugins.of(FOLDERS).load(name) for name in shell.plugins.of(FOLDERS)]
    others = [(folder, kind) for folder in folders for kind in kinds if kind.is_one(folder)]
    for folder, kind in others if len(folders) > 1 else ():
        raise UsageError(f"{kind.NOUN} must have a page of its own; give {folder!r} without the other folders.")
    if points and not others:
        raise UsageError("--point must be given with the folder of a sweep.")
    path = check_file("report", Path(folders[0], _PAGE) if output is None else Path(output), ".html")
    said = output or str(Path(folders[0], _PAGE))
    told = others[0][1].write_page(shell, folders[0], path, points) if others else _runs(shell, folders, path)
    click.echo(shown(f"{said}: {told}"))


def _runs(shell: Shell, runs: tuple[str, ...], path: Path) -> str:
    """Write the page of runs; return what it shows in words."""
    from kernbench_builtin.pages.report.saved_runs import read_run
    from kernbench_builtin.pages.run_report import write_report

    with doing("reading the runs"):
        pages = [read_run(Path(run), run) for run in runs]
    with doing("writing the page"):
        write_report(path, pages, shell.plugins)
    return "1 run" if len(pages) == 1 else f"{len(pages)} runs side by side"
