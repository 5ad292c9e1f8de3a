"""`kernbench web`, and the page of `run --web`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import rich_click as click

from kernbench_builtin.pages.plugin import FOLDERS, REPORT_SECTIONS
from kernbench_builtin.pages.served import browse, say, wait
from kernbench_core.cli.option_types import completed_by, port
from kernbench_core.cli.shell import Shell
from kernbench_core.process.interrupt import doing


@click.command()
@click.argument("folder", metavar="[FOLDER]", default=".", shell_complete=completed_by("files"))
@click.option("--port", type=port(), default=0, help="The port. [default: any free one]")
@click.option("--open", "show", is_flag=True, help="Open the page in the browser.")
@click.pass_obj
def web(shell: Shell, folder: str, port: int, show: bool) -> None:
    """Show the runs and sweeps below FOLDER (run --out, sweep -o) in a browser, until Ctrl-C."""
    with doing("loading kernbench"):
        from kernbench_builtin.pages.web import SavedSite, served
        from kernbench_builtin.pages.web.saved_runs import saved_runs
        from kernbench_builtin.pages.web.saved_sweeps import saved_sweeps

    kinds = shell.plugins.of(FOLDERS)
    reader = partial(kinds.load("sweep").read_page, shell.plugins) if "sweep" in kinds else None
    site = SavedSite(Path(folder), shell.plugins.of(REPORT_SECTIONS), strict=shell.plugins.strict, read_sweep=reader)
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
