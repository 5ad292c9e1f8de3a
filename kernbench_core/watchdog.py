"""Limits on a run, the loop that keeps to them, and the interrupt for a kernel that never comes back."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any

import attrs

from kernbench_core.environment import Environment
from kernbench_core.errors import LimitError, UsageError
from kernbench_core.units import EXACT_NS, format_time

#: Wall time between two looks at the limits and two progress reports, in s.
_LOOK_S = 0.2
_FEWEST_EVENTS, _MOST_EVENTS = 64, 65536
#: Events between two collections of cyclic garbage.
_COLLECT_EVERY = 1 << 20
#: How much later than the limit a program that never returns to the simulator is interrupted, and again, in s.
_GRACE_S = 0.3


@attrs.frozen
class Limits:
    """Say when a run is to be stopped; None is no limit.

    `max_events` counts SimPy events, `max_sim_ns` is simulated ns, `timeout_s` wall-clock seconds.
    """

    max_events: int | None = None
    max_sim_ns: float | None = None
    timeout_s: float | None = None

    def __attrs_post_init__(self) -> None:
        for name, value in attrs.asdict(self).items():
            kind, must_be = (int, "integer") if name == "max_events" else (int | float, "finite number")
            if value is not None and not (isinstance(value, kind) and 0 < value < math.inf):
                raise UsageError(f"{name} must be a positive {must_be} or None, not {value!r}.")


@attrs.frozen
class Progress:
    """Tell how far a run is: simulated ns, SimPy events, wall seconds, and the fraction done if known."""

    sim_ns: float
    events: int
    wall_s: float
    fraction: float | None = None


@contextlib.contextmanager
def _no_automatic_collection() -> Iterator[None]:
    """Collect cyclic garbage at counted events only, and then put things back as they were.

    Scratchpad space is given back with the last reference to a handle. Where that lies in a reference cycle, the
    moment of automatic collection, which depends on everything else in the process, would show in the op log.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class WallTimeExceeded(BaseException):
    """Raised inside whatever runs when the wall-time limit is over; no `except Exception` stops it."""


class Watchdog:
    """Advance an environment until nothing is left or `finished()`, within `limits`."""

    def __init__(self, env: Environment, limits: Limits, on_progress: Callable[[Progress], None] | None) -> None:
        self._env = env
        self._limits = limits
        self._on_progress = on_progress
        self._began = time.perf_counter()
        self.wall_s = 0.0

    def run(self, finished: Callable[[], bool]) -> None:
        """Process events; raise LimitError when a limit is reached, naming where a stuck program is."""
        self._began = time.perf_counter()
        try:
            with _no_automatic_collection(), _Alarm(self._limits.timeout_s) as alarm:
                self._loop(finished, alarm)
        except WallTimeExceeded as stuck:
            raise LimitError(self._too_long(_innermost_user_line(stuck.__traceback__))) from None
        finally:
            self.wall_s = time.perf_counter() - self._began
            self._report()

    def _loop(self, finished: Callable[[], bool], alarm: _Alarm) -> None:
        env, limits = self._env, self._limits
        most = _FEWEST_EVENTS
        looked = time.perf_counter()
        until = EXACT_NS if limits.max_sim_ns is None else min(EXACT_NS, limits.max_sim_ns)
        while not finished():
            left = env.advance(self._next_slice(most), until)
            if alarm.interrupted:
                raise KeyboardInterrupt
            if not left:
                return
            if env.peek() > until:
                if until == EXACT_NS:
                    raise LimitError(
                        f"the run reached {format_time(until)} of simulated time after {env.events} events, and later "
                        f"times are not exact on the grid of 2^-16 ns; simulate less at once."
                    )
                raise LimitError(
                    f"the run reached its limit of {format_time(until)} of simulated time after {env.events} events; "
                    "raise --max-sim-time if it is only long."
                )
            if limits.max_events is not None and env.events >= limits.max_events and not finished():
                raise LimitError(
                    f"the run reached its limit of {limits.max_events} events at simulated time "
                    f"{format_time(env.now)}; raise --max-events if it is only long."
                )
            now = time.perf_counter()
            if limits.timeout_s is not None and now - self._began > limits.timeout_s:
                raise LimitError(self._too_long(None))
            took, looked = now - looked, now
            most = max(_FEWEST_EVENTS, min(_MOST_EVENTS, int(most * _LOOK_S / max(took, 1e-6) / 2), most * 2))
            self._report()

    def _next_slice(self, most: int) -> int:
        """Return how many events to process: up to a limit, or to where garbage is collected, if they are nearer."""
        to_collection = _COLLECT_EVERY - self._env.events % _COLLECT_EVERY
        if to_collection == _COLLECT_EVERY and self._env.events:
            gc.collect()
        most = min(most, to_collection)
        if self._limits.max_events is None:
            return most
        return max(1, min(most, self._limits.max_events - self._env.events))

    def _report(self) -> None:
        if self._on_progress is not None:
            self._on_progress(Progress(self._env.now, self._env.events, time.perf_counter() - self._began))

    def _too_long(self, line: str | None) -> str:
        where = f" in {line}, which never returned to the simulator" if line else ""
        return (
            f"the run reached its limit of {self._limits.timeout_s:g} s of wall time at simulated time "
            f"{format_time(self._env.now)}, after {self._env.events} events{where}; raise --timeout if it is only long."
        )


class _Alarm:
    """Raise WallTimeExceeded in the thread that entered, some time after the limit, until it leaves.

    In the main thread a signal does it, which also ends a sleep; elsewhere, or where the program uses SIGALRM
    itself, it waits for the next line of Python. Ctrl-C is made as insistent: pressed again, it also stops a
    program that catches everything. Nothing is raised inside a `__del__`, which would be cut in two and swallow
    it, nor inside the entry and exit of this class.
    """

    def __init__(self, timeout_s: float | None) -> None:
        self._timeout_s = timeout_s
        self._thread_id = threading.get_ident()
        self._lock = threading.Lock()
        self._left = threading.Event()
        self._replaced: dict[int, Any] = {}
        self._came: dict[int, int] = {}
        self._tracer = sys.gettrace()

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C was pressed: asked between events, as what was raised may have been swallowed."""
        return signal.SIGINT in self._came

    def __enter__(self) -> _Alarm:
        if threading.current_thread() is threading.main_thread():
            self._take(signal.SIGINT, signal.default_int_handler)
            if self._timeout_s is not None and hasattr(signal, "pthread_kill"):
                self._take(signal.SIGALRM, signal.SIG_DFL)
        if self._timeout_s is not None:
            threading.Thread(target=self._watch, args=(self._timeout_s + _GRACE_S,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._left.set()
        for number, handler in self._replaced.items():
            signal.signal(number, handler)
        if max(self._came.values(), default=0) > 1:
            sys.settrace(self._tracer)

    def _take(self, number: int, usual: Any) -> None:
        """Handle a signal here, unless somebody has set a handler of his own."""
        if signal.getsignal(number) == usual:
            self._replaced[number] = signal.signal(number, self._on_signal)

    def _watch(self, wait_s: float) -> None:
        while not self._left.wait(wait_s):
            wait_s = _GRACE_S
            with self._lock:
                if not self._left.is_set():
                    self._ring()

    def _ring(self) -> None:
        if getattr(signal, "SIGALRM", None) in self._replaced:
            signal.pthread_kill(self._thread_id, signal.SIGALRM)
        else:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread_id), ctypes.py_object(WallTimeExceeded)
            )

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        error = KeyboardInterrupt if number == signal.SIGINT else WallTimeExceeded
        self._came[number] = self._came.get(number, 0) + 1
        if _spared(frame):
            return
        if self._came[number] > 1:
            _raise_at_next_line(frame, error)
        raise error


def wall_limit(timeout_s: float | None) -> contextlib.AbstractContextManager[object]:
    """Raise WallTimeExceeded in this thread, wherever it is, some time after `timeout_s` seconds in the block."""
    return _Alarm(timeout_s)


_OWN = (_Alarm.__enter__.__code__, _Alarm.__exit__.__code__)


def _spared(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_name != "__del__" and frame.f_code not in _OWN:
        frame = frame.f_back
    return frame is not None


def _raise_at_next_line(frame: FrameType | None, error: type[BaseException]) -> None:
    """Raise `error` once more, at the next line: in the handler of a program that catches everything."""

    def trace(_: FrameType, event: str, __: object) -> Any:
        if event == "line":
            raise error
        return None if event == "call" else trace

    while frame is not None and not frame.f_globals.get("__name__", "").startswith("kernbench_core."):
        frame.f_trace = trace
        frame = frame.f_back
    sys.settrace(trace)


def _innermost_user_line(traceback: TracebackType | None) -> str | None:
    """Return "file:line" of the innermost frame outside kernbench_core, or None."""
    found = None
    while traceback is not None:
        module = str(traceback.tb_frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in ("kernbench_core", "simpy", "threading"):
            found = f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return found
