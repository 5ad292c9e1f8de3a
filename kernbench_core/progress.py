"""Show how far a run has come: one live line on stderr, in a terminal only.

The engine calls `ProgressDisplay.update` at least twice a second with a `Progress`; the display redraws
from the last one on its own clock.
"""

from __future__ import annotations

import os
import pdb
import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, TextIO

from kernbench_core.units import format_count, format_time
from kernbench_core.watchdog import Progress


class ProgressDisplay:
    """Draw progress while a run is under way; a context manager that shows nothing when `stream` is no terminal.

    What is shown never goes back. A kernel's `print` appears above the line. `breakpoint()` takes the
    line away for the rest of the run, so that the debugger has the terminal.
    """

    def __init__(self, title: str, stream: TextIO | None = None, *, enabled: bool = True) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.title = title
        self.active = enabled and self.stream.isatty()
        self._live: Any = None
        self.latest = Progress(0.0, 0, 0.0)
        self._hook: Callable[..., Any] | None = None

    def __enter__(self) -> ProgressDisplay:
        if not self.active:
            return self
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner

        self._spinner = Spinner("dots")
        self._live = Live(
            get_renderable=self._draw,
            console=Console(file=self.stream),
            refresh_per_second=8,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),
        )
        self._live.start(refresh=True)
        self._hook = sys.breakpointhook
        sys.breakpointhook = self._on_breakpoint
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._hook is not None:
            sys.breakpointhook = self._hook
            self._hook = None
        self.stop()

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

    def stop(self) -> None:
        """Take the line away; `update` stays harmless."""
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()

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

        latest = self.latest
        grid = Table.grid(padding=(0, 1))
        grid.add_row(self._spinner, self.title, *describe(latest))
        return grid


def describe(progress: Progress) -> tuple[str, ...]:
    """Return the cells of the progress line: simulated time, events, events/s, and what is left if known."""
    rate = float(f"{progress.events / progress.wall_s:.3g}") if progress.wall_s > 0 else 0.0
    cells = [format_time(progress.sim_ns), f"{format_count(progress.events)} events", f"{format_count(rate)} events/s"]
    if progress.fraction:
        left = progress.wall_s * (1 - progress.fraction) / progress.fraction
        cells.append(f"{progress.fraction:.0%}, {left:.0f} s left")
    return tuple(cells)
