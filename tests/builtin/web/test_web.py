"""`kernbench web` and `run --web` as processes: what they serve, and how they end."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import kernbench as kb
from kernbench_builtin.pages.plugin import REPORT_SECTIONS
from kernbench_builtin.pages.web import SavedSite, served
from kernbench_core.cli import main
from kernbench_core.plugins import Plugins
from tests.core.forked import Forked, command

Started = Callable[..., tuple[Forked, str, str]]


@pytest.fixture
def start(plugins: Plugins) -> Iterator[Started]:
    """Give a function that starts a command, and returns the process, what it says first, and the address in that."""
    started: list[Forked] = []

    def begin(*args: str) -> tuple[Forked, str, str]:
        process = Forked(command(*args, plugins=plugins), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        started.append(process)
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line + process.stderr.read()
        return process, line, found[0]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def got(address: str) -> str:
    """Return the text at an address."""
    with urllib.request.urlopen(address, timeout=60) as answer:
        return str(answer.read().decode())


def ended(process: Forked, number: int) -> tuple[int, str, str]:
    """Send a signal; return how the process ended, and what it printed."""
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_a_folder_is_served_until_ctrl_c(plugins: Plugins, tmp_path: Path, start: Started) -> None:
    """Runs that come meanwhile too; the end is a quiet one."""
    process, line, address = start("web", str(tmp_path))
    assert line == f"no runs are in {tmp_path}, shown at {address} until Ctrl-C.\n"
    kb.run("vector-add", "tiny", {"n": 64}, plugins=plugins, out=tmp_path / "one")
    assert 'href="/run?at=one"' in got(address)
    page = got(f"{address}run?at=one")
    assert "<title>one – kernbench</title>" in page and 'data-of="timeline"' in page
    assert ended(process, signal.SIGINT) == (0, "", "")


def test_sweeps_are_served_beside_the_runs_that_they_keep(plugins: Plugins, tmp_path: Path, start: Started) -> None:
    """The page of a sweep leads to the run of a point that has its page."""
    done = kb.sweep("vector-add", "tiny", {"n": [64, 128]}, plugins=plugins, out=tmp_path / "s", processes=1)
    assert main(["report", str(tmp_path / "s"), "--point", done.records[0]["key"]], plugins) == 0
    process, line, address = start("web", str(tmp_path))
    assert line == f"1 run and 1 sweep are in {tmp_path}, shown at {address} until Ctrl-C.\n"
    kept = f"s%2Fruns%2F{done.records[0]['key'][:12]}"
    index = got(address)
    assert 'href="/sweep?at=s"' in index and f'href="/run?at={kept}"' in index
    assert "<title>vector-add: 2 points – kernbench</title>" in got(f"{address}sweep?at=s")
    assert "<title>s/runs/" in got(f"{address}run?at={kept}")
    assert ended(process, signal.SIGINT) == (0, "", "")


def test_a_run_is_served_while_it_goes_on_and_after_it(start: Started) -> None:
    """Its result is printed as ever; the page is the whole run then, until Ctrl-C."""
    process, line, address = start("run", "vector-add", "--topology", "tiny", "-p", "n=64", "--web", "-q")
    assert line == f"the run is shown at {address} while it goes on, and then until Ctrl-C.\n"
    assert "vector-add on tiny" in got(address)
    found: dict[str, Any] = {}
    deadline = time.monotonic() + 60
    while found.get("state") != "complete" and time.monotonic() < deadline:
        found = json.loads(got(f"{address}progress"))
        time.sleep(0.05)
    assert found["state"] == "complete" and found["page"] >= 1
    page = got(f"{address}page")
    assert "this run goes on" not in page and "<h1>vector-add on tiny</h1>" in page
    code, out, err = ended(process, signal.SIGINT)
    assert (code, err) == (0, "") and out.startswith("vector-add on tiny: ")


def test_sigterm_ends_it_as_any_command(tmp_path: Path, start: Started) -> None:
    """With 143."""
    process, _, _ = start("web", str(tmp_path))
    assert ended(process, signal.SIGTERM)[0] == 143


@pytest.fixture
def port(plugins: Plugins, tmp_path: Path) -> Iterator[str]:
    """Give a port that somebody serves pages at."""
    with served(SavedSite(tmp_path, plugins.of(REPORT_SECTIONS))) as address:
        yield address.rstrip("/").rpartition(":")[2]


def test_what_cannot_be_served_is_a_sentence(
    plugins: Plugins, tmp_path: Path, port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that is none, a port that is none, one in use: 2, before anything runs."""
    none = str(tmp_path / "none")
    in_use = (
        f"--port must be a free port, but {port} is not available: Address already in use; give another one, or none."
    )
    for args, said in (
        (["web", none], f"{none!r} must be a folder, and does not exist; give the one that your runs are in."),
        (["web", "--port", port, str(tmp_path)], in_use),
        (["run", "vector-add", "--web", "--port", port], in_use),
        (["run", "vector-add", "--port", "5"],
         "--port must be given with --web; leave out --port 5, or give --web, too."),
        (["web", "--port", "x"], "option --port must be a port from 0 (any free one) to 65535, not 'x'."),
    ):
        assert main(args, plugins) == 2
        printed = capsys.readouterr()
        assert (printed.out, printed.err) == ("", f"error: {said}\n")
