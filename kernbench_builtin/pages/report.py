"""`kernbench report`: saved runs, or a sweep, as one page to look at."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import rich_click as click

from kernbench_core.cli.option_types import completed_by
from kernbench_core.cli.shell import Shell
from kernbench_core.errors import UsageError
from kernbench_core.process.interrupt import doing
from kernbench_core.process.terminal import shown

_PAGE = "report.html"
_FRONT = "front"


@click.command()
@click.argument("folders", metavar="FOLDER...", nargs=-1, required=True, shell_complete=completed_by("files"))
@click.option(
    "-o", "--output", metavar="FILE", help=f"The HTML file to write; {_PAGE} in the folder without it.",
    shell_complete=completed_by("files"),
)
@click.option(
    "--point", "points", metavar="KEY", multiple=True,
    help=f"Of a sweep: run this point again for a page of its own; '{_FRONT}' is all that none is better than.",
)
@click.pass_obj
def report(shell: Shell, folders: tuple[str, ...], output: str | None, points: tuple[str, ...]) -> None:
    """Write one offline HTML page of runs, side by side, or of a sweep; each FOLDER is from run --out or sweep -o."""
    with doing("loading kernbench"):
        from kernbench_builtin.sweeps.folder import is_sweep
        from kernbench_core.process.whole_files import check_file

    if output is None and len(folders) > 1:
        raise UsageError(f"-o must name the file to write, as {len(folders)} folders stand side by side in it.")
    swept = [folder for folder in folders if is_sweep(folder)]
    if swept and len(folders) > 1:
        raise UsageError(f"a sweep must stand alone on its page; give {swept[0]!r} without the other folders.")
    if points and not swept:
        raise UsageError("--point must be given with the folder of a sweep.")
    path = check_file("report", Path(folders[0], _PAGE) if output is None else Path(output), ".html")
    said = output or str(Path(folders[0], _PAGE))
    told = _sweep(shell, folders[0], path, points) if swept else _runs(shell, folders, path)
    click.echo(shown(f"{said}: {told}"))


def _runs(shell: Shell, runs: tuple[str, ...], path: Path) -> str:
    """Write the page of runs; return what it shows in words."""
    from kernbench_core.report.saved_runs import read_run
    from kernbench_core.runs.looks import write_report

    with doing("reading the runs"):
        pages = [read_run(Path(run), run) for run in runs]
    with doing("writing the page"):
        write_report(path, pages, shell.plugins)
    return "1 run" if len(pages) == 1 else f"{len(pages)} runs side by side"


def _sweep(shell: Shell, folder: str, path: Path, points: tuple[str, ...]) -> str:
    """Write the page of a sweep, and of points of it before; return what it shows in words."""
    from kernbench_builtin.sweeps.pages.page import read_sweep_page
    from kernbench_builtin.sweeps.pages.point_pages import PAGE, run_folder
    from kernbench_core.process.whole_files import write_text
    from kernbench_core.report import render_sweep

    for point in points:
        _points(shell, folder, point)

    def link(record: Mapping[str, Any]) -> str:
        page = run_folder(Path(folder), record) / PAGE
        return quote(Path(os.path.relpath(page, path.parent)).as_posix()) if page.is_file() else ""

    with doing("reading the sweep"):
        page = read_sweep_page(Path(folder), folder, shell.plugins, link)
    with doing("writing the page"):
        write_text(path, render_sweep(page))
    return "1 point" if len(page.points) == 1 else f"{len(page.points):,} points"


def _points(shell: Shell, folder: str, named: str) -> None:
    """Make the pages of the points that `--point` names, and tell each."""
    from kernbench_builtin.sweeps import read_sweep
    from kernbench_builtin.sweeps.pages.page import front_of
    from kernbench_builtin.sweeps.pages.point_pages import PAGE, make_page, point_named, run_folder

    sweep = read_sweep(folder)
    for record in front_of(sweep) if named == _FRONT else [point_named(sweep, named)]:
        with doing(f"running point {record['index']}"):
            make_page(sweep, record, shell.plugins)
        click.echo(shown(f"{run_folder(Path(folder), record) / PAGE}: point {record['index']}"))
