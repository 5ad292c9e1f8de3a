"""What can be wrong with what is scheduled, or with what a model returns: no model may do it."""

from __future__ import annotations

from typing import Any

from kernbench_core.errors import ComponentError


class SchedulingFault(Exception):
    """An `event` cannot happen."""

    def __init__(self, event: Any) -> None:
        super().__init__(event)
        self.event = event

    def in_words(self, now: float) -> str:
        """Say what is wrong and what to do, where it is found at `now` ns."""
        raise NotImplementedError


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
        return (
            f"{_sender(self.event)} must not send anything into the past: at {now} ns it scheduled an event for "
            f"{self.time} ns; emit a message no earlier than the time at which it was served."
        )


class Untimely(SchedulingFault):
    """A message was to leave before now, or with its last byte before its first: at `head` and `tail` ns."""

    def __init__(self, event: Any, head: float, tail: float) -> None:
        super().__init__(event)
        self.head, self.tail = head, tail

    def in_words(self, now: float) -> str:
        """Say who sent it, and when."""
        return (
            f"{_sender(self.event)} must send nothing before now, nor a last byte before the first: at {now} ns it "
            f"sent a {type(self.event).__name__} with its head at {self.head} ns and its tail at {self.tail} ns; "
            "correct what emit is given."
        )


def _sender(event: Any) -> str:
    """Return the node before the one that a message is bound for, as far as it tells."""
    path = getattr(event, "path", ())
    return str(path[max(0, event.hop - 1)]) if path else "a component"


def unusable(component: Any, what: str, must: str, found: object) -> ComponentError:
    """Return the error for a method or attribute `what` of a component that `must` return, or be, something else."""
    model = type(component)
    return ComponentError(
        f"{component.id}: {model.__module__}.{model.__qualname__}.{what} must {must}, not {found!r}; correct the "
        f"component or choose another one for kind {component.node.kind!r}."
    )
