"""The clock: SimPy's event loop on a time grid, with deliveries first at every instant.

Time is float nanoseconds. Every duration is rounded up once, when it is made, to a multiple of
2^-16 ns, so sums are exact and results do not depend on the order of additions.

At one instant deliveries come first, in the order (edge id, sequence); then everything else, in the
order in which it was scheduled.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from heapq import heappush
from itertools import count
from math import ceil, inf
from typing import Any, NoReturn, Protocol

import simpy
from simpy.core import BoundClass
from simpy.events import NORMAL, Initialize, Process, Timeout

from kernbench_core.errors import ComponentError
from kernbench_core.events.faults import SchedulingFault
from kernbench_core.events.queue import COMPILED, DELIVERY, EventQueue
from kernbench_core.units import GRID_NS, as_float, grid_ceil

#: What a `run` generator may yield, and what it is.
Event = simpy.events.Event
ProcessGenerator = Generator[Event, Any, Any]

#: A delivery's tie key is edge id * 2^40 + sequence: 2^40 deliveries per edge are out of reach.
SEQUENCE_BITS = 40
#: Edge id of messages that are put into a component from outside the graph.
INJECTION_EDGE = 0

_TICKS_PER_NS = 1.0 / GRID_NS
_NOT_SIMPY = (
    "`env.run` and `env.step` must not be called, as kernbench runs the simulation; wait with `yield env.timeout(ns)` "
    "in a `run`, or come back with `env.call_at`"
)


class Delivery(Protocol):
    """What is delivered: a message, which is the event of its own arrival. Times are in ns."""

    head: float
    tail: float
    born: float
    callbacks: tuple[Callable[[Any], None], ...] | None


class GridTimeout(Timeout):
    """Happen after a delay in ns, rounded up to the grid; `env.timeout` makes it, and says all that it is."""

    # for speed: a class that says how its objects begin takes long to call (tools/bench_engine.py: a run() hop -3 %)
    __init__ = object.__init__


class Environment(simpy.Environment):
    """Run SimPy events on the time grid; count them; deliver messages before anything else."""

    def __init__(self) -> None:
        self.clock = EventQueue()
        self._queue = self.clock  # type: ignore[assignment]
        self._eid = count()
        BoundClass.bind_early(self)

    @property
    def now(self) -> float:
        """The time, in ns."""
        return self.clock.now

    _now = now  # as SimPy's own events call it

    @property
    def active_process(self) -> Process | None:
        """The process that runs now; None inside a delivery."""
        return self.clock.active  # type: ignore[no-any-return]

    @property
    def _active_proc(self) -> Process | None:
        """The same, as SimPy's own events call it."""
        return self.clock.active  # type: ignore[no-any-return]

    @_active_proc.setter
    def _active_proc(self, process: Process | None) -> None:
        self.clock.active = process

    @property
    def events(self) -> int:
        """How many events have happened."""
        return self.clock.happened

    @property
    def scheduled(self) -> int:
        """How many events are still to happen."""
        return len(self.clock)

    def schedule(self, event: Event, priority: Any = NORMAL, delay: float = 0) -> None:
        """Put `event` on the queue `delay` ns from now, rounded up to the grid.

        A process that ends by an interrupt (Ctrl-C, a wall-time limit) leaves nothing else on the queue: no
        other program may start before the interrupt is raised.
        """
        if not event._ok and not isinstance(event._value, Exception):
            self.clock.clear()
        if delay:
            delay = ceil(delay * _TICKS_PER_NS) * GRID_NS
        queue = self.clock
        queue.push(queue.now + delay, priority, next(self._eid), event)

    def timeout(self, delay: float = 0, value: object = None) -> GridTimeout:
        """Return an event that happens after a delay in ns, rounded up to the grid."""
        if not 0.0 <= delay < inf:
            raise ValueError(f"a delay must be a finite time in ns, at least 0, not {delay!r}")
        made: GridTimeout = GridTimeout()
        made.env = self
        made.callbacks = []
        made._value = value
        made._delay = delay
        made._ok = True
        # inlined from schedule for speed (tools/bench_engine.py)
        queue = self.clock
        time = queue.now + ceil(delay * _TICKS_PER_NS) * GRID_NS
        if COMPILED:
            queue.push(time, NORMAL, next(self._eid), made)
        else:
            heappush(queue, (time, NORMAL, next(self._eid), made))
        return made

    def inject(self, msg: Delivery, arrive: Callable[[Any], None], at: float | None = None) -> None:
        """Deliver `msg` to `arrive`, as a delivery of the injection edge, at `at` ns; default: now."""
        time = self.clock.now if at is None else max(self.clock.now, grid_ceil(at))
        msg.head = msg.tail = msg.born = time
        self.call_at(time, msg, arrive)

    def call_at(self, time: float, msg: Delivery, callback: Callable[[Any], None]) -> None:
        """Call `callback(msg)` at `time` ns (on the grid, not in the past), as a delivery of the injection edge.

        Numbers of any class are times, as numpy's. ValueError for a time in the past and for NaN, TypeError for what is
        no number.
        """
        queue = self.clock
        if type(time) is not float:
            time = as_float(time)
        if not time >= queue.now:
            raise ValueError(f"call_at must be given a time from now, {queue.now} ns, on, not {time!r}")
        queue.appoint(time, msg, (callback,))

    def run(self, until: object = None) -> NoReturn:
        """Raise RuntimeError: the engine has events happen, and what waits for one yields it."""
        raise RuntimeError(_NOT_SIMPY)

    def step(self) -> NoReturn:
        """Raise RuntimeError, as `run` does."""
        raise RuntimeError(_NOT_SIMPY)

    def horizon_ns(self) -> float:
        """Return when the last of what is scheduled happens, and has ended where it is a message; now if nothing is."""
        return max((max(time, getattr(event, "tail", time)) for time, _, _, event in self.clock), default=self._now)

    def halt(self, _: object = None) -> None:
        """End the simulation inside this event, whatever is still scheduled; an event's callback."""
        raise simpy.core.StopSimulation

    def advance(self, most: int, until: float = inf) -> bool:
        """Process up to `most` events, none of them later than `until` ns; return whether any are left.

        After `halt` none are: what is still scheduled does not happen any more.
        An exception that no process handles is raised as it was, not as SimPy's copy of it.
        """
        queue = self.clock
        try:
            queue.run(most, until)
        except simpy.core.StopSimulation:
            queue.clear()
        except SchedulingFault as fault:
            raise ComponentError(fault.in_words(queue.now)) from None
        return bool(queue)


class Signal:
    """Wake the one process that waits here, inside the event that fires it: no event of its own.

    A process waits with `value = yield signal`. `fire` may only be called from a delivery, never from
    a running process (there, use `Environment.event`). A signal that was fired before it was waited
    on resumes its waiter at once; `rearm` makes it wait again.
    """

    __slots__ = ("_defused", "_ok", "_value", "callbacks")

    def __init__(self) -> None:
        self.callbacks: list[Callable[[Any], None]] | None = []
        self._ok = True
        self._value: object = None
        self._defused = True

    @property
    def fired(self) -> bool:
        """Whether `fire` was called since the signal was made or rearmed."""
        return self.callbacks is None

    def fire(self, value: object = None) -> None:
        """Hand `value` to the waiter and resume it now."""
        callbacks, self.callbacks = self.callbacks, None
        self._value = value
        if callbacks:
            for callback in callbacks:
                callback(self)

    def rearm(self) -> Signal:
        """Make the signal wait for its next `fire`; return it."""
        self.callbacks = []
        return self


__all__ = [
    "DELIVERY",
    "INJECTION_EDGE",
    "NORMAL",
    "SEQUENCE_BITS",
    "Environment",
    "Event",
    "Initialize",
    "Process",
    "ProcessGenerator",
    "Signal",
]
