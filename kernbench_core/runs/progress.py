"""Show how far a run has come: one live line on stderr, in a terminal only.

Whoever runs calls `ProgressDisplay.update` with a `Progress` when there is one; the display redraws from the last one,
and from its own clock, eight times a second, however long one event or one batch of phase 2 takes.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType, MappingProxyType, TracebackType
from typing import Any, TextIO

import attrs

from kernbench_core.engine.watchdog import Progress
from kernbench_core.process.terminal import shown
from kernbench_core.units import format_count, format_time

#: Of a step that has just begun nobody can say how long it takes.
_SOON_S = 1.0
_STREAMS = ("stdout", "stderr")


class ProgressDisplay:
    """Draw progress while a run is under way; a context manager that shows nothing when `stream` is no terminal.

    What is printed to a terminal meanwhile stands above the line. None is shown where `rows` go into a pipe: its reader
    may print them behind it. `breakpoint()` takes the line away for good, so that the debugger has the terminal.
    """

    def __init__(self, title: str, stream: TextIO | None = None, *, enabled: bool = True, rows: bool = False) -> None:
        self._began = self._updated = time.monotonic()
        self.stream = sys.stderr if stream is None else stream
        self.title = title
        self.active = enabled and self.stream.isatty() and not (rows and Path("/dev/stdout").is_fifo())
        self._live: Any = None
        self.latest = Progress(0.0, 0, 0.0)
        self._hook: Callable[..., Any] | None = None
        self._above: dict[str, _Above] = {}

    def __enter__(self) -> ProgressDisplay:
        if not self.active:
            return self
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner

        self._spinner = Spinner("dots")
        self._console = Console(file=self.stream)
        self._live = Live(
            get_renderable=self._draw,
            console=self._console,
            refresh_per_second=8,
            transient=True,
            redirect_stdout=False,  # it would break long rows at words, and click does not write to it
            redirect_stderr=False,
        )
        self._live.start(refresh=True)
        for name in _STREAMS:
            if (stream := getattr(sys, name)).isatty():
                self._above[name] = _Above(self._console, stream)
                setattr(sys, name, self._above[name])
        self._hook = sys.breakpointhook
        sys.breakpointhook = self._on_breakpoint
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._hook is not None:
            sys.breakpointhook = self._hook
            self._hook = None
        self.stop()

    def update(self, progress: Progress) -> None:
        """Take note of how far the run is; cheap, called by whoever runs."""
        self.latest, self._updated = progress, time.monotonic()

    def forms(self) -> tuple[str, ...]:
        """Return what stands behind the title, the longest form first; a sub-class may say something else."""
        now = time.monotonic()
        waited = now - self._updated
        return describe(attrs.evolve(self.latest, step_s=self.latest.step_s + waited), now - self._began)

    def stop(self) -> None:
        """Take the line away; `update` stays harmless."""
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()
        for name, above in self._above.items():
            if getattr(sys, name) is above:  # nobody has put something else there
                setattr(sys, name, above.stream)
            above.stream.write(above.begun)
        self._above = {}

    def _on_breakpoint(self, *args: Any, **kwargs: Any) -> Any:
        self.stop()
        hook = self._hook or sys.__breakpointhook__
        caller: FrameType = sys._getframe(1)
        if hook is sys.__breakpointhook__ and not os.environ.get("PYTHONBREAKPOINT"):
            import pdb

            # pdb stops in the frame that called set_trace; called through the default hook that would be this one.
            return pdb.Pdb(**kwargs).set_trace(caller)
        return hook(*args, **kwargs)

    def _draw(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        line = one_line(self.title, self.forms(), self._console.width - 2)
        grid = Table.grid(padding=(0, 1))
        grid.add_row(self._spinner, Text(shown(line), no_wrap=True, overflow="ellipsis"))
        return grid


class _Above:
    """A stream whose whole lines stand above the progress line; in all else it is the stream under it."""

    def __init__(self, console: Any, stream: TextIO) -> None:
        self._console, self.stream, self.begun = console, stream, ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write the lines that are whole, and keep what is begun."""
        *lines, self.begun = (self.begun + text).split("\n")
        if lines:
            self._console.out("\n".join(lines), highlight=False)
        return len(text)


def one_line(title: str, forms: Sequence[str], width: int) -> str:
    """Return a title and the longest of `forms` that fits behind it, else the shortest one, which is cut."""
    lines = [f"{title}{_GAP}{form}".rstrip() for form in forms or ("",)]
    return next((line for line in lines if len(line) <= width), lines[-1])


_GAP = "  "
#: What a phase is called in few letters, where that is not its own name.
_SHORT: Mapping[str, str] = MappingProxyType(
    {"host_to_device": "copying", "launch": "launching", "device_to_host": "copying", "summing": "summing up"}
)


def describe(progress: Progress, elapsed_s: float) -> tuple[str, ...]:
    """Return what the progress line says, from all that is known to what a narrow terminal has room for.

    The phase with its kernel, the part that is over and what is left of it, then the time since the beginning,
    simulated time, and events per second. The last go first, then the kernel's name and the time.
    """
    named, short = progress.named, _SHORT.get(progress.phase, progress.phase)
    part, elapsed = _part(progress), format_clock(elapsed_s)
    simulated = [format_time(progress.sim_ns), f"{format_count(float(f'{progress.events_per_s:.3g}'))} events/s"]
    if not progress.events:
        simulated = []
    cells = [
        [named, part, elapsed, *simulated],
        [named, part, elapsed, *simulated[:1]],
        [named, part, elapsed],
        [short, part, elapsed],
        [short, part],
    ]
    return tuple(dict.fromkeys(_GAP.join(filter(None, each)) for each in cells))


def _part(progress: Progress) -> str:
    """Say how much is over, and when the step will be if it goes on so; a part is never said to be all before it is."""
    if progress.fraction is None:
        return f"{progress.done} of {progress.of} {progress.unit}" if progress.of and progress.unit != "bytes" else ""
    percent = f"{math.floor(progress.fraction * 100)}%"
    if progress.left_s is None or progress.step_s < _SOON_S:
        return percent
    left = math.ceil(progress.left_s)
    return f"{percent}, {f'{left} s' if left < 60 else format_clock(left)} left"


def format_clock(seconds: float) -> str:
    """Write real time as a clock does: `0:12`, `1:05`, `2:00:07`."""
    minutes, whole = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{whole:02}" if hours else f"{minutes}:{whole:02}"
