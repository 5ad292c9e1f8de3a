"""Show how far a run has come: one live line on stderr, in a terminal only.

The engine calls `ProgressDisplay.update` at least twice a second with a `Progress`; the display redraws
from the last one on its own clock.
"""

from __future__ import annotations

import os
import pdb
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, TextIO

from kernbench_core.engine.watchdog import Progress
from kernbench_core.process.terminal import shown
from kernbench_core.units import format_count, format_time

_AWAY_S = 0.1
"""How long the line stays away after a row went into a pipe, whose reader may print it on the same terminal."""


class ProgressDisplay:
    """Draw progress while a run is under way; a context manager that shows nothing when `stream` is no terminal.

    What is shown never goes back. Whatever is printed meanwhile stands above the line as it would without.
    `breakpoint()` takes the line away for the rest of the run, so that the debugger has the terminal.
    """

    def __init__(self, title: str, stream: TextIO | None = None, *, enabled: bool = True) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.title = title
        self.active = enabled and self.stream.isatty()
        self._live: Any = None
        self.latest = Progress(0.0, 0, 0.0)
        self._hook: Callable[..., Any] | None = None
        self._away_until = 0.0
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
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start(refresh=True)
        for name in ("stdout", "stderr"):
            above = _Above(self, getattr(sys, name))
            self._above[name] = above
            setattr(sys, name, above)
        self._hook = sys.breakpointhook
        sys.breakpointhook = self._on_breakpoint
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._hook is not None:
            sys.breakpointhook = self._hook
            self._hook = None
        self.stop()
        self._give_back()

    def update(self, progress: Progress) -> None:
        """Take note of how far the run is; cheap, called by the engine."""
        latest = self.latest
        fraction = progress.fraction
        if latest.fraction is not None:
            fraction = latest.fraction if fraction is None else max(latest.fraction, fraction)
        self.latest = Progress(
            max(latest.sim_ns, progress.sim_ns),
            max(latest.events, progress.events),
            max(latest.wall_s, progress.wall_s),
            fraction,
        )

    def cells(self) -> tuple[str, ...]:
        """Return what stands behind the title; a sub-class may say something else."""
        return describe(self.latest)

    def stop(self) -> None:
        """Take the line away; `update` stays harmless."""
        if self._live is not None:
            live, self._live = self._live, None
            self._away_until = 0.0
            live.stop()
        for above in self._above.values():
            above.end()
        self._give_back()

    def write(self, stream: TextIO, lines: Sequence[str]) -> None:
        """Write whole lines to a stream: above the line where they come to its terminal."""
        live = self._live
        if live is None:
            stream.write("".join(f"{line}\n" for line in lines))
        elif _same_terminal(stream, self.stream):
            self._console.out("\n".join(lines), highlight=False)
        else:
            self._away_until = time.monotonic() + _AWAY_S
            live.refresh()
            stream.write("".join(f"{line}\n" for line in lines))

    def _give_back(self) -> None:
        """Let sys.stdout and sys.stderr be what they were, unless somebody else has put something there."""
        for name, above in self._above.items():
            if getattr(sys, name) is above:
                setattr(sys, name, above.stream)

    def _on_breakpoint(self, *args: Any, **kwargs: Any) -> Any:
        self.stop()
        hook = self._hook or sys.__breakpointhook__
        caller: FrameType = sys._getframe(1)
        if hook is sys.__breakpointhook__ and not os.environ.get("PYTHONBREAKPOINT"):
            # pdb stops in the frame that called set_trace; called through the default hook that would be this one.
            return pdb.Pdb(**kwargs).set_trace(caller)
        return hook(*args, **kwargs)

    def _draw(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        if time.monotonic() < self._away_until:
            return Text("")
        line = one_line(self.title, self.cells(), self._console.width - 2)
        grid = Table.grid(padding=(0, 1))
        grid.add_row(self._spinner, Text(shown(line), no_wrap=True, overflow="ellipsis"))
        return grid


class _Above:
    """A stream whose lines stand above the progress line; in all else it is the stream under it."""

    def __init__(self, display: ProgressDisplay, stream: TextIO) -> None:
        self._display, self.stream = display, stream
        self._begun = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write the lines that are whole, and keep what is begun."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        *lines, self._begun = (self._begun + text).split("\n")
        if lines:
            self._display.write(self.stream, lines)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts one after the other."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush the stream; a line that is begun waits for its end."""
        self.stream.flush()

    def end(self) -> None:
        """Write what was begun."""
        begun, self._begun = self._begun, ""
        if begun:
            self.stream.write(begun)


def _same_terminal(one: TextIO, other: TextIO) -> bool:
    """Tell whether two streams are one, or go to one terminal."""
    if one is other:
        return True
    with suppress(OSError, ValueError):
        return one.isatty() and other.isatty() and os.path.sameopenfile(one.fileno(), other.fileno())
    return False


def one_line(title: str, cells: Sequence[str], width: int) -> str:
    """Return a title and the cells of `describe` in one line of at most `width` characters.

    What a narrow terminal goes without: the rate, the number of events, the simulated time, then the title's end.
    """
    kept = list(cells)
    for spare in cells[2::-1]:
        if len(" ".join((title, *kept))) <= width:
            break
        kept.remove(spare)
    room = width - sum(len(cell) + 1 for cell in kept)
    if len(title) > room:
        title = f"{title[: max(0, room - 1)]}…"
    return " ".join((title, *kept)) if room > 0 else "…"


def describe(progress: Progress) -> tuple[str, ...]:
    """Return the cells of the progress line: simulated time, events, events/s, and what is left if known."""
    rate = float(f"{progress.events / progress.wall_s:.3g}") if progress.wall_s > 0 else 0.0
    cells = [format_time(progress.sim_ns), f"{format_count(progress.events)} events", f"{format_count(rate)} events/s"]
    if progress.fraction:
        left = progress.wall_s * (1 - progress.fraction) / progress.fraction
        cells.append(f"{progress.fraction:.0%}, {left:.0f} s left")
    return tuple(cells)
