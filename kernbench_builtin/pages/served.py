"""A run in a browser of this machine while it goes on: where it is shown, and waiting for Ctrl-C."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import rich_click as click

from kernbench_builtin.pages.plugin import REPORT_SECTIONS
from kernbench_core.cli.shell import Shell
from kernbench_core.process.interrupt import Terminated, doing
from kernbench_core.process.terminal import shown

if TYPE_CHECKING:
    from kernbench_builtin.pages.web.live_run import LiveRun


@contextmanager
def watched(shell: Shell, title: str, port: int) -> Iterator[LiveRun]:
    """Serve a run that is going to begin, and tell where."""
    with doing("loading kernbench"):
        from kernbench_builtin.pages.web import LiveRun, served

    live = LiveRun(title, shell.plugins.of(REPORT_SECTIONS), strict=shell.plugins.strict)
    with served(live, port) as address:
        say(f"the run is shown at {address} while it goes on, and then until Ctrl-C.")
        try:
            yield live
        except BaseException:
            live.failed()
            raise


def browse(address: str) -> None:
    """Open the user's browser at an address, or say that there is none."""
    import webbrowser  # when it is used: it loads what starts processes

    try:
        found = webbrowser.open(address)
    except webbrowser.Error:
        found = False
    if not found:
        say("no browser was found; open the address in one.")


def wait() -> None:
    """Let the server work until Ctrl-C."""
    try:
        threading.Event().wait()
    except KeyboardInterrupt as stop:
        if isinstance(stop, Terminated):
            raise


def say(sentence: str) -> None:
    """Write a sentence to stderr."""
    click.echo(shown(sentence), err=True)
