"""`kernbench web`, and the page of `run --web`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from kernbench_core.cli.option_types import PortNumber, completed_by
from kernbench_core.cli.shell import Shell
from kernbench_core.cli.web import browse, say, wait
from kernbench_core.process.interrupt import doing

if TYPE_CHECKING:
    from kernbench_core.plugins import Plugins
    from kernbench_core.report import SweepPage


@click.command()
@click.argument("folder", metavar="[FOLDER]", default=".", shell_complete=completed_by("files"))
@click.option("--port", type=PortNumber(), default=0, help="The port on this machine; any free one without it.")
@click.option("--open", "show", is_flag=True, help="Open the page in the browser.")
@click.pass_obj
def web(shell: Shell, folder: str, port: int, show: bool) -> None:
    """Show the runs and sweeps below FOLDER, of `run --out` and `sweep -o`, in a browser here, until Ctrl-C."""
    with doing("loading kernbench"):
        from kernbench_core.web import SavedSite, served
        from kernbench_core.web.saved_runs import saved_runs
        from kernbench_core.web.saved_sweeps import saved_sweeps

    reader = partial(_read_sweep, shell.plugins)
    site = SavedSite(Path(folder), shell.plugins.report_sections, strict=shell.plugins.strict, read_sweep=reader)
    with served(site, port) as address:
        say(f"{_there(len(saved_runs(site.folder)), len(saved_sweeps(site.folder)))} in {site.folder}, shown at "
              f"{address} until Ctrl-C.")  # fmt: skip
        if show:
            browse(address)
        wait()


def _there(runs: int, sweeps: int) -> str:
    """Say what is in a folder: "1 run is", "3 runs and 1 sweep are"."""
    counts = [f"{runs or 'no'} run{'' if runs == 1 else 's'}"]
    counts += [f"{sweeps} sweep{'' if sweeps == 1 else 's'}"] if sweeps else []
    return f"{' and '.join(counts)} {'is' if runs == 1 and not sweeps else 'are'}"


def _read_sweep(plugins: Plugins, folder: Path, run_at: Callable[[Path], str]) -> SweepPage:
    """Read a sweep for the server; the pages of its points are those of the runs that it keeps."""
    from kernbench_builtin.sweeps.pages.page import read_sweep_page
    from kernbench_builtin.sweeps.pages.point_pages import run_folder

    return read_sweep_page(folder, str(folder), plugins, lambda record: run_at(run_folder(folder, record)))
