"""The one Chromium of a run, headless: each test marked `browser` opens a context of its own in it, and closes it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

#: It reaches nothing but this machine, and asks for nothing by itself.
_FLAGS = (
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)  # fmt: skip


def start(at_end: Callable[[Callable[[], None]], None]) -> Any:
    """Return a browser of playwright's, which the last of the functions handed to `at_end` closes."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("there is no Chromium here")
    playwright = pytest.importorskip("playwright.sync_api").sync_playwright().start()
    at_end(playwright.stop)
    browser = playwright.chromium.launch(executable_path=program, args=[*_FLAGS])
    at_end(browser.close)
    return browser


def live_cpu_seconds() -> float:
    """Return the CPU seconds of the processes below this one that are alive, those of Chromium among them, and of
    what these have waited for; 0 where /proc does not tell."""
    parents, ticks = {}, {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            told = file.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        pid = int(file.parent.name)
        parents[pid], ticks[pid] = int(told[1]), sum(map(int, told[11:15]))
    below, found = {os.getpid()}, 0
    while more := {pid for pid, parent in parents.items() if parent in below and pid not in below}:
        found += sum(ticks[pid] for pid in more)
        below |= more
    return found / os.sysconf("SC_CLK_TCK")
