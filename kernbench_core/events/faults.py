"""What can be wrong with what is scheduled: no model may do it."""

from __future__ import annotations

from typing import Any


class SchedulingFault(Exception):
    """An `event` cannot happen."""

    def __init__(self, event: Any) -> None:
        super().__init__(event)
        self.event = event

    def in_words(self, now: float) -> str:
        """Say what is wrong and what to do, where it is found at `now` ns."""
        raise NotImplementedError


class NotAnEvent(RuntimeError):
    """A process yielded a `value` that cannot happen."""

    def __init__(self, value: object) -> None:
        super().__init__(f'Invalid yield value "{value}"')
        self.value = value


class ScheduledTwice(SchedulingFault):
    """The event has happened before, and nobody scheduled it anew."""

    def in_words(self, now: float) -> str:
        """Say what was sent twice, and on which way."""
        path = getattr(self.event, "path", ())
        way = f" on its way from {path[0]} to {path[-1]}" if path else ""
        return (
            f"each message must be sent once, but a {type(self.event).__name__}{way} was sent twice; find the "
            "component that calls emit twice for it."
        )


class IntoThePast(SchedulingFault):
    """The event was scheduled for a `time` (ns) that is over."""

    def __init__(self, event: Any, time: float) -> None:
        super().__init__(event)
        self.time = time

    def in_words(self, now: float) -> str:
        """Say who scheduled it, as far as the event tells: the node before the one that a message is bound for."""
        path = getattr(self.event, "path", ())
        sender = str(path[max(0, self.event.hop - 1)]) if path else "a component"
        return (
            f"{sender} must not send anything into the past: at {now} ns it scheduled an event for {self.time} ns; "
            "emit a message no earlier than the time at which it was served."
        )
