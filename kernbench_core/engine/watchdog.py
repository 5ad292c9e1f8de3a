"""Limits on a run, and the loop that keeps to them."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import attrs

from kernbench_core.engine.no_progress import NoProgress
from kernbench_core.environment import Environment
from kernbench_core.errors import LimitError, UsageError
from kernbench_core.process.collection import no_automatic_collection
from kernbench_core.process.interrupt import Alarm, WallTime, WallTimeExceeded
from kernbench_core.units import EXACT_NS, format_time
from kernbench_core.wording import brief

#: Wall time between two looks at the limits and two progress reports, in s.
_LOOK_S = 0.2
_FEWEST_EVENTS, _MOST_EVENTS = 64, 65536
#: No limit is as high: a float holds all below it.
_ENDLESS: Final = 1e300
#: Events between two collections of cyclic garbage, and between two that go through all objects there are.
_COLLECT_EVERY, _COLLECT_ALL = 1 << 20, 1 << 24
#: The generations that the others go through: what was made since the last one, and not the machine.
_YOUNG: Final = 1
#: What people read of a phase.
_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "building": "building the machine",
        "bench": "running the bench",
        "host_to_device": "copying to the device",
        "launch": "launching",
        "device_to_host": "copying to the host",
        "computing": "computing the data",
        "summing": "summing up",
        "writing": "writing files",
    }
)


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
            if value is not None and not (isinstance(value, kind) and 0 < value < _ENDLESS):
                raise UsageError(f"{name} must be a positive {must_be} or None, not {brief(value)}.")


@attrs.frozen
class Progress:
    """How far a run is, at one moment of it.

    `sim_ns` is simulated time, `events` counts SimPy events, `events_per_s` how many of them a second of simulating
    takes; `wall_s` is real time since the run began. `phase` is what it does: "building" the machine, "bench" while the
    host program does what takes no simulated time, then "host_to_device", "launch", "kernel" or "device_to_host", in
    phase 2 "verifying" or "computing", at the end "summing" up and "writing"; "" where only the engine tells. `what` is
    the kernel.

    `done` `of` `unit`s of the present step of it (one copy, one launch, all ops of phase 2) are over, where that is
    counted, None where not. `fraction` (0 to 1, never less than before in one step) is the part of the step that is
    over, None where nobody knows; then `left_s`, what is left of the step if it goes on as in the `step_s` that it has
    taken, is None, too.
    """

    sim_ns: float
    events: int
    wall_s: float
    fraction: float | None = None
    phase: str = ""
    what: str = ""
    done: int | None = None
    of: int | None = None
    unit: str = ""
    step_s: float = attrs.field()
    events_per_s: float = attrs.field()

    @step_s.default
    def _all_of_it(self) -> float:
        return self.wall_s

    @events_per_s.default
    def _rate(self) -> float:
        return self.events / self.wall_s if self.wall_s > 0 else 0.0

    @property
    def named(self) -> str:
        """The phase in words, with the kernel where there is one; "" where only the engine tells."""
        return f"{_WORDS.get(self.phase, self.phase)} {self.what}".strip()

    @property
    def left_s(self) -> float | None:
        """How many seconds are left of the step, None where nobody knows."""
        return self.step_s * (1 - self.fraction) / self.fraction if self.fraction else None


class Watchdog:
    """Advance an environment until nothing is left, within `limits`.

    `wall` is the wall time that is left of a run of which this is a part; by default that of the limits.
    """

    def __init__(
        self,
        env: Environment,
        limits: Limits,
        on_progress: Callable[[Progress], None] | None,
        wall: WallTime | None = None,
    ) -> None:
        self._env = env
        self._limits = limits
        self._on_progress = on_progress
        self._wall = wall or WallTime(limits.timeout_s)
        self._began = time.perf_counter()
        self._stalled = NoProgress(env)
        self.wall_s = 0.0

    def run(self) -> None:
        """Process events; raise LimitError when a limit is reached, naming where a stuck program is."""
        self._began = time.perf_counter()
        self._stalled = NoProgress(self._env)
        # Scratchpad space is given back with the last reference to a handle. Where that lies in a reference cycle, the
        # moment of automatic collection, which depends on everything else in the process, would show in the op log.
        try:
            with no_automatic_collection(), Alarm(self._wall.left_s) as alarm:
                self._loop(alarm)
        except WallTimeExceeded as stuck:
            if self._wall.timeout_s is None:  # the limit is of something that this is a part of
                raise
            raise LimitError(self._too_long(stuck.line)) from None
        finally:
            self.wall_s = time.perf_counter() - self._began
            self._wall.spent_s += self.wall_s
            self._report()

    def _loop(self, alarm: Alarm) -> None:
        env, limits, timeout_s = self._env, self._limits, self._wall.left_s
        most = _FEWEST_EVENTS
        looked = time.perf_counter()
        until = EXACT_NS if limits.max_sim_ns is None else min(EXACT_NS, limits.max_sim_ns)
        while True:
            left = env.advance(self._next_slice(most), until)
            if (stop := alarm.interrupted) is not None:
                raise stop
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
            self._stalled.look()
            if limits.max_events is not None and env.events >= limits.max_events:
                raise LimitError(
                    f"the run reached its limit of {limits.max_events} events at simulated time "
                    f"{format_time(env.now)}{self._stalled.in_words() or '; raise --max-events if it is only long.'}"
                )
            now = time.perf_counter()
            if timeout_s is not None and now - self._began > timeout_s:
                raise LimitError(self._too_long(None))
            took, looked = now - looked, now
            most = max(_FEWEST_EVENTS, min(_MOST_EVENTS, int(most * _LOOK_S / max(took, 1e-6) / 2), most * 2))
            self._report()

    def _next_slice(self, most: int) -> int:
        """Return how many events to process: up to a limit, or to where garbage is collected, if they are nearer."""
        to_collection = _COLLECT_EVERY - self._env.events % _COLLECT_EVERY
        if to_collection == _COLLECT_EVERY and self._env.events:
            gc.collect(_YOUNG if self._env.events % _COLLECT_ALL else 2)
        most = min(most, to_collection)
        if self._limits.max_events is None:
            return most
        return max(1, min(most, self._limits.max_events - self._env.events))

    def _report(self) -> None:
        if self._on_progress is not None:
            self._on_progress(Progress(self._env.now, self._env.events, time.perf_counter() - self._began))

    def _too_long(self, line: str | None) -> str:
        remedy = "; raise --timeout if it is only long."
        where = f" in {line}, which never returned to the simulator{remedy}" if line else ""
        return (
            f"the run reached its limit of {self._wall.timeout_s:g} s of wall time at simulated time "
            f"{format_time(self._env.now)}, after {self._env.events} events"
            f"{where or self._stalled.in_words() or remedy}"
        )
