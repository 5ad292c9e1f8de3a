"""The queue of events: what is still to happen, earliest first; at one time by priority, then by key.

queue.pyx beside it is the same in C, with entries in an array; which of the two this module is says `COMPILED`. Both
give the same order, as no two entries are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import repeat
from operator import length_hint
from typing import Any, ClassVar, TypeAlias

from kernbench_core.events.copying import copied
from kernbench_core.events.declared import refuses_to_be_hidden
from kernbench_core.events.faults import IntoThePast, ScheduledTwice

#: Priority of a delivery: before SimPy's URGENT (0) and NORMAL (1) at the same time.
DELIVERY = -1
#: Whether this is the compiled form.
COMPILED = False
_Entry: TypeAlias = "tuple[float, int, int, Any]"


#: What `step` returns for a generator that has returned.
OVER = object()


def step(steps: Any, value: object) -> Any:
    """Send a value into a generator; return what it yields then, or OVER."""
    try:
        return steps.send(value)
    except StopIteration:
        return OVER


def place_of(pairs: tuple[Any, ...], path: tuple[object, ...], hop: int) -> int:
    """Return the place behind the one in `pairs` that has the object of a path's hop, or -1."""
    if not 0 <= hop < len(path):
        return -1
    wanted = path[hop]
    return next((at + 1 for at in range(0, len(pairs), 2) if pairs[at] is wanted), -1)


class Scheduled:
    """Happen when it is due: `callbacks`, a tuple of one or a list, are then called with it, once."""

    __slots__ = ("callbacks",)

    callbacks: Iterable[Callable[[Any], None]] | None

    __copy__ = copied
    __init_subclass__ = refuses_to_be_hidden


class EventQueue(list[_Entry]):
    """Keep (time in ns, priority, key, event); `now` is the time of the last that happened, `happened` counts them.

    `injected` is the key of the last delivery that came over no edge, `active` the process that runs now, if any.
    `failed` are, in the compiled form, the callbacks and the event that something was raised in: compiled frames have
    no local variables that would tell.
    """

    __slots__ = ("active", "happened", "injected", "now")
    failed: ClassVar[tuple[Any, Any] | None] = None

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.happened = self.injected = 0
        self.active: Any = None

    def push(self, time: float, priority: int, key: int, event: Any) -> None:
        """Have an event happen at `time` ns."""
        heappush(self, (time, priority, key, event))

    def appoint(self, time: float, event: Any, callbacks: tuple[Callable[[Any], None], ...]) -> None:
        """Have `callbacks` called with an event at `time` ns, as a delivery over no edge."""
        event.callbacks = callbacks
        self.injected += 1
        heappush(self, (time, DELIVERY, self.injected, event))

    def drain(self) -> list[_Entry]:
        """Remove and return all entries, in no order."""
        found = self[:]
        self.clear()
        return found

    def run(self, most: int, until: float) -> None:
        """Have up to `most` events happen, none of them later than `until` ns.

        An exception that no process handles is raised as it was, not as SimPy's copy of it. Raise ScheduledTwice and
        IntoThePast for what can not happen.
        """
        turns, unused = repeat(None, most), 0  # what repeats None makes no numbers (tools/bench_engine.py: a hop -1 %)
        callbacks: Any = ()
        now = self.now
        try:
            for _ in turns:
                if not self:
                    unused = 1
                    break
                time, priority, key, event = heappop(self)
                if not time >= now or time > until:  # apart, for speed; a time that is no number is past
                    heappush(self, (time, priority, key, event))
                    unused = 1
                    if time > until:
                        break
                    raise IntoThePast(event, time)
                self.now = now = time
                callbacks = event.callbacks
                event.callbacks = None
                if type(callbacks) is tuple:  # of a message, which does not fail
                    (callback,) = callbacks
                    callback(event)
                    continue
                for callback in callbacks:
                    callback(event)
                if not event._ok and not hasattr(event, "_defused"):
                    raise event._value
        except TypeError:
            if callbacks is not None:
                raise
            raise ScheduledTwice(event) from None
        finally:
            self.happened += most - length_hint(turns) - unused
