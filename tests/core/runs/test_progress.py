"""Progress is shown in a terminal only, and gives way to a debugger."""

from __future__ import annotations

import io
import os
import pty
import select
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import attrs
import click
import pytest

from kernbench_core.engine.watchdog import Progress
from kernbench_core.runs.progress import ProgressDisplay, describe, format_clock, one_line
from tests.core.screen import run_in_terminal, screen, wrapped


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_nothing_is_shown_without_a_terminal() -> None:
    """A pipe gets not one byte, nor does a terminal when progress is off."""
    for stream, enabled in ((io.StringIO(), True), (Terminal(), False)):
        with ProgressDisplay("gemm", stream, enabled=enabled) as display:
            display.update(Progress(5.0, 10, 1.0))
            assert not display.active
        assert stream.getvalue() == ""


def test_a_terminal_shows_time_events_and_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line holds the time since the beginning, simulated time and events/s, and is gone at the end."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    stream = Terminal()
    with ProgressDisplay("gemm", stream) as display:
        display.update(Progress(12_500.0, 40_000, 0.5, 0.25, "kernel", "add_kernel"))
        deadline = time.monotonic() + 60
        while "80 k events/s" not in stream.getvalue() and time.monotonic() < deadline:
            time.sleep(0.02)
    assert "gemm" in stream.getvalue()
    assert "gemm  kernel add_kernel  25%  0:00  12.5 us  80 k events/s" in stream.getvalue()


def test_the_clock_goes_on_while_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """One event, or one batch, may take long: the time goes on, and what is left does not shrink by waiting."""
    clock = [100.0]
    monkeypatch.setattr("kernbench_core.runs.progress.time", SimpleNamespace(monotonic=lambda: clock[0]))
    display = ProgressDisplay("gemm", io.StringIO())
    clock[0] = 110.0
    display.update(Progress(2e6, 300, 10.0, 0.5, "kernel", "k", step_s=8.0))
    assert display.forms()[0] == "kernel k  50%, 8 s left  0:10  2 ms  30 events/s"
    clock[0] = 165.0
    assert display.forms()[0] == "kernel k  50%, 1:03 left  1:05  2 ms  30 events/s"


RUNNING = Progress(2e6, 3_000_000, 2.0)


@pytest.mark.parametrize(
    ("progress", "form"),
    [
        (Progress(0.0, 0, 0.0), "0:02"),
        (RUNNING, "0:02  2 ms  1.5 M events/s"),
        (attrs.evolve(RUNNING, fraction=0.25), "25%, 6 s left  0:02  2 ms  1.5 M events/s"),
        (attrs.evolve(RUNNING, fraction=0.25, step_s=0.5), "25%  0:02  2 ms  1.5 M events/s"),  # it has just begun
        (attrs.evolve(RUNNING, fraction=0.999), "99%, 1 s left  0:02  2 ms  1.5 M events/s"),
        (attrs.evolve(RUNNING, fraction=1.0), "100%, 0 s left  0:02  2 ms  1.5 M events/s"),
        (attrs.evolve(RUNNING, fraction=0.01), "1%, 3:18 left  0:02  2 ms  1.5 M events/s"),
        (attrs.evolve(RUNNING, phase="bench"), "running the bench  0:02  2 ms  1.5 M events/s"),
        (
            attrs.evolve(RUNNING, phase="kernel", what="k", done=0, of=64, unit="programs"),
            "kernel k  0 of 64 programs  0:02  2 ms  1.5 M events/s",
        ),
        (
            attrs.evolve(RUNNING, phase="host_to_device", done=1, of=64, unit="bytes", fraction=0.5),
            "copying to the device  50%, 2 s left  0:02  2 ms  1.5 M events/s",
        ),
        (Progress(0.0, 0, 0.1, phase="building"), "building the machine  0:02"),
        (attrs.evolve(RUNNING, phase="of a plug-in"), "of a plug-in  0:02  2 ms  1.5 M events/s"),
    ],
)
def test_what_is_known_is_said(progress: Progress, form: str) -> None:
    """The part done and the time left appear only when they are known, and never all before it is over."""
    assert describe(progress, 2.5)[0] == form


@pytest.mark.parametrize(("seconds", "text"), [(0.0, "0:00"), (59.99, "0:59"), (60.0, "1:00"), (7207.0, "2:00:07")])
def test_a_clock(seconds: float, text: str) -> None:
    assert format_clock(seconds) == text


def test_breakpoint_takes_the_line_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """A debugger gets the terminal, in the frame that called breakpoint()."""
    monkeypatch.delenv("PYTHONBREAKPOINT", raising=False)
    called: list[bool] = []
    with monkeypatch.context() as patched:
        patched.setattr(sys, "breakpointhook", lambda: called.append(display._live is None))
        with ProgressDisplay("gemm", Terminal()) as display:
            breakpoint()
            display.update(Progress(1.0, 1, 1.0))
        assert called == [True]


PROGRAM = """
import sys
from kernbench_core.runs.progress import ProgressDisplay
with ProgressDisplay("gemm") as display:
    here = 41
    breakpoint()
    here += 1
print("end", here)
"""


def test_a_debugger_stops_in_the_callers_frame(tmp_path: Path) -> None:
    """In a real terminal, pdb prints a name of the frame that called breakpoint(), and goes on."""
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(PROGRAM))
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("PYTHONBREAKPOINT", None)
    process = subprocess.Popen(
        [sys.executable, script], stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True
    )
    os.close(theirs)
    os.write(ours, b"p here + 1\nc\n")
    seen = b""
    deadline = time.monotonic() + 60
    while b"end 42" not in seen and time.monotonic() < deadline:
        if select.select([ours], [], [], 0.1)[0]:
            seen += os.read(ours, 4096)
    process.wait(60)
    os.close(ours)
    # from 3.13 on, Python stops at the call and not behind it
    stopped = b"program.py(6)<module>()" if sys.version_info >= (3, 13) else b"program.py(7)<module>()"
    assert stopped in seen
    assert b"\n42\r" in seen
    assert b"end 42" in seen


def rows() -> int:
    """Print rows beside progress, in several ways."""
    with ProgressDisplay("a title as long as that of a table, 3 of 10 runs") as display:
        for number in range(4):
            display.update(Progress(1e4 * number, 4000 * number, 0.5 * number, 0.25 * number))
            click.echo(f"row {number}   [bold]" + "x y" * 30)
            print("said", end=" ")
            time.sleep(0.15)
            print("\x1b[31min red\x1b[0m", number)
            click.echo(f"warned {number}", err=True)
    click.echo("end")
    return 0


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140])
def test_rows_stand_whole_above_the_line(width: int) -> None:
    """Whoever prints, and however wide it is: in one terminal rows are as without progress, and nothing else stays."""
    seen, _ = run_in_terminal(rows, width)
    row = "x y" * 30
    printed = [line for n in range(4) for line in (f"row {n}   [bold]{row}", f"said in red {n}", f"warned {n}")]
    assert screen(seen, width) == wrapped([*printed, "end"], width)
    assert "\x1b[31min red\x1b[0m 3" in seen
    assert "75%, " in seen or width < 60


def test_a_pipe_gets_rows_without_controls() -> None:
    """What goes through a pipe is what is printed; the line is taken away before a row, and comes again."""
    seen, out = run_in_terminal(rows, 80, piped=True)
    row = "x y" * 30
    assert out.splitlines() == [
        line for n in range(4) for line in (f"row {n}   [bold]{row}", f"said \x1b[31min red\x1b[0m {n}")
    ] + ["end"]
    assert screen(seen, 80) == [f"warned {n}" for n in range(4)]
    assert "3 of 10 runs" in seen


def streamed() -> int:
    """Print rows while a display is open that knows of them."""
    with ProgressDisplay("a table", rows=True) as display:
        display.update(Progress(1e4, 4000, 0.5, 0.25))
        click.echo("a row")
    return 0


def test_no_line_stands_beside_rows_that_a_reader_may_print_there() -> None:
    """`… | tee FILE` prints rows in the same terminal, at a time that nobody knows."""
    assert run_in_terminal(streamed, 80, piped=True) == ("", "a row\n")
    seen, _ = run_in_terminal(streamed, 80)
    assert "a table" in seen
    assert screen(seen, 80) == ["a row"]


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (80, "all_reduce, 3 of 10 runs  kernel ring_kernel  25%, 6 s left  1:02  2 ms"),
        (70, "all_reduce, 3 of 10 runs  kernel ring_kernel  25%, 6 s left  1:02"),
        (60, "all_reduce, 3 of 10 runs  kernel  25%, 6 s left  1:02"),
        (50, "all_reduce, 3 of 10 runs  kernel  25%, 6 s left"),
        (40, "all_reduce, 3 of 10 runs  kernel  25%, 6 s left"),
    ],
)
def test_the_line_is_one_line_whatever_the_width(width: int, line: str) -> None:
    """The rate goes first, then simulated time, the kernel's name and the clock; the terminal cuts the rest."""
    forms = describe(attrs.evolve(RUNNING, fraction=0.25, phase="kernel", what="ring_kernel"), 62.0)
    assert one_line("all_reduce, 3 of 10 runs", forms, width) == line


def test_a_title_without_more_is_the_line() -> None:
    """What has no simulated time to tell has its title only."""
    assert one_line("case 3 of 10: ring, 5 ranks", (), 80) == "case 3 of 10: ring, 5 ranks"
