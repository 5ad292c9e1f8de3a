"""The folder of a sweep, for the commands that show saved things: is it one, its page, and pages of its points."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import rich_click as click

from kernbench_core.process.interrupt import doing
from kernbench_core.process.terminal import shown

if TYPE_CHECKING:
    from kernbench_builtin.pages.report import SweepPage
    from kernbench_core.cli.shell import Shell
    from kernbench_core.plugins import Plugins

_FRONT: Final = "front"


class SavedSweep:
    """What `report` and `web` ask of sweeps; it imports what is heavy when it is needed."""

    NOUN = "a sweep"

    def is_one(self, folder: str) -> bool:
        """Whether a folder is a sweep's."""
        from kernbench_builtin.sweeps.folder import is_sweep

        return is_sweep(folder)

    def read_page(self, plugins: Plugins, folder: Path, run_at: Callable[[Path], str]) -> SweepPage:
        """Read a sweep for the server; the pages of its points are those of the runs that it keeps."""
        from kernbench_builtin.sweeps.pages.page import read_sweep_page
        from kernbench_builtin.sweeps.pages.point_pages import run_folder

        return read_sweep_page(folder, str(folder), plugins, lambda record: run_at(run_folder(folder, record)))

    def write_page(self, shell: Shell, folder: str, path: Path, points: tuple[str, ...]) -> str:
        """Write the page of a sweep, and of points of it before; return what it shows in words."""
        from kernbench_builtin.pages.report import render_sweep
        from kernbench_builtin.sweeps.pages.page import read_sweep_page
        from kernbench_builtin.sweeps.pages.point_pages import PAGE, run_folder
        from kernbench_core.process.whole_files import write_text

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


SAVED = SavedSweep()
